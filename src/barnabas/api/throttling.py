"""What a request costs its client: bytes, time and changes, held against its quotas (KIP-13, 124, 219, 599).

A throttled answer says so, and goes out at once; then its connection is not read for as long.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.api.context import RequestContext
from barnabas.quotas.mutations import ControllerMutationQuota


def charge(context: RequestContext, elapsed_ns: int, *, is_answered: bool) -> None:
    """Count a request that took `elapsed_ns` of the thread, and set how long its client must wait.

    Only while quotas are enabled. Time is counted for requests that are answered, as in Apache Kafka.
    """
    if context.api.authenticates:
        return
    quotas = context.node.quotas
    client = quotas.of(context.connection.principal, context.client_id)
    waits_ms = [context.throttle_ms]
    if context.api.carries_records:
        waits_ms.append(quotas.produced(client, context.size_bytes))
    if is_answered:
        waits_ms.append(quotas.record_request_time(client, elapsed_ns))
    context.throttle_ms = max(waits_ms)
    if context.throttle_ms:
        quotas.throttled_count += 1


@contextmanager
def mutations(context: RequestContext, strict_from: int | None) -> Iterator[ControllerMutationQuota]:
    """The quota of changes to partitions for this request; what was counted is taken when the block ends.

    :param strict_from: The version that knows THROTTLING_QUOTA_EXCEEDED; None: none does.
    """
    quotas = context.node.quotas
    client = quotas.of(context.connection.principal, context.client_id) if quotas.enabled else None
    quota = ControllerMutationQuota(
        None if client is None else client.mutation,
        quotas.now_ms(),
        is_strict=strict_from is not None and context.api_version >= strict_from,
    )
    try:
        yield quota
    finally:
        context.throttle_ms = max(context.throttle_ms, quota.commit())
