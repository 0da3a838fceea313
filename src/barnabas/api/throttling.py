"""Quotas: bytes, time and partition changes of requests are charged to their clients (KIP-13, 124, 219, 599).

A throttled response is sent immediately with the throttle time; then the connection is not read for that time.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.api.context import RequestContext
from barnabas.quotas.mutations import ControllerMutationQuota


def charge(context: RequestContext, elapsed_ns: int, *, is_answered: bool) -> None:
    """Charge a request that took `elapsed_ns` of the thread, and set its throttle time.

    Only if quotas are enabled. Time is charged for requests with a response, as in Apache Kafka.
    """
    if context.api.authenticates or context.is_exempt:
        return
    quotas = context.broker.quotas
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
    """Return the quota of partition changes for this request; changes are charged when the block ends.

    :param strict_from: First version with THROTTLING_QUOTA_EXCEEDED; None if there is none.
    """
    quotas = context.broker.quotas
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
