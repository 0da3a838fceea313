"""The quota of partition mutations within one request (KIP-599).

A decision may be repeated after the state changes, so each attempt counts on its own `Allowance`. Only the
committed attempt takes tokens from the bucket.
"""

from collections.abc import Callable

from barnabas.quotas.token_bucket import TokenBucket
from barnabas.wire.errors import ErrorCode, KafkaError

#: Called with a number of partitions before they change. Raises THROTTLING_QUOTA_EXCEEDED.
Admit = Callable[[int], None]


class ControllerMutationQuota:
    """The mutations of one request. `is_strict`: its version knows THROTTLING_QUOTA_EXCEEDED; older versions only
    wait.
    """

    def __init__(self, bucket: TokenBucket | None, now_ms: int, *, is_strict: bool) -> None:
        self._bucket = bucket
        self._now_ms = now_ms
        self._is_strict = is_strict
        self._taken = 0
        self._was_refused = False

    def admit(self) -> Admit:
        """Start the count of a new attempt."""
        self._taken, self._was_refused = 0, False
        return self._admit

    def _admit(self, count: int) -> None:
        if self._bucket is None:
            return
        wait_ms = self._bucket.wait_ms(self._now_ms, self._taken) if self._is_strict else 0
        if wait_ms:
            self._was_refused = True
            message = f"The controller mutation quota is exceeded: retry in {wait_ms} ms."
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, message)
        self._taken += count

    def commit(self) -> int:
        """Take the counted tokens; return the throttle time in ms."""
        if self._bucket is None:
            return 0
        self._bucket.take(self._taken, self._now_ms)
        if self._is_strict and not self._was_refused:
            return 0
        return self._bucket.wait_ms(self._now_ms)


UNLIMITED = ControllerMutationQuota(None, 0, is_strict=False)
