"""Throttles of replication for tests."""

from barnabas.base.clock import Clock, ManualClock
from barnabas.quotas.rate import Windows
from barnabas.replication.throttle import ReplicationThrottle

NO_LIMIT = (1 << 63) - 1


def throttle(
    limit: int = NO_LIMIT, *replicas: str, clock: Clock | None = None, window_ms: int = 1000
) -> ReplicationThrottle:
    """Return a throttle of so many bytes per second, measured over three windows, of these replicas of each topic."""
    return ReplicationThrottle(
        clock or ManualClock(), Windows(3, window_ms), lambda: limit, lambda partition: replicas
    )
