"""The quota of partition mutations within one request (KIP-599).

A decision may be repeated after the state changes, or made in parts. Only the last attempt of each part takes tokens
from the bucket.
"""

from collections.abc import Callable, Sequence
from functools import partial

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
        self._taken: dict[int, int] = {}  #: id of the first resource of an attempt -> mutations
        self._is_committed = False
        self._refused: dict[int, None] = {}  #: attempts in which a mutation was refused

    def admit(self, requested: Sequence[object]) -> Admit:
        """Start the count of an attempt to change these resources: all of the request, or a part of them.

        It replaces the last attempt that began with the same resource.
        """
        attempt = id(requested[0]) if requested else 0
        if self._bucket is None:
            return _admit_all
        self._taken[attempt] = 0
        self._refused.pop(attempt, None)
        return partial(self._admit, attempt)

    def _admit(self, attempt: int, count: int) -> None:
        assert self._bucket is not None
        if self._is_committed:  # the request has timed out, and is still being written
            self._bucket.take(count, self._now_ms)
            return
        taken = sum(self._taken.values())
        wait_ms = self._bucket.wait_ms(self._now_ms, taken) if self._is_strict else 0
        if wait_ms:
            self._refused[attempt] = None
            message = f"The controller mutation quota is exceeded: retry in {wait_ms} ms."
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, message)
        self._taken[attempt] += count

    def commit(self) -> int:
        """Take the counted tokens; return the throttle time in ms."""
        if self._bucket is None:
            return 0
        self._is_committed = True
        self._bucket.take(sum(self._taken.values()), self._now_ms)
        if self._is_strict and not self._refused:
            return 0
        return self._bucket.wait_ms(self._now_ms)


def _admit_all(_count: int) -> None:
    """Admit changes without a quota."""


UNLIMITED = ControllerMutationQuota(None, 0, is_strict=False)
