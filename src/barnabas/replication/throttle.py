"""The bytes per second that throttled replicas send to followers, or copy from leaders (KIP-73)."""

from collections.abc import Callable, Collection

from barnabas.base.clock import Clock
from barnabas.quotas.rate import Rate, Windows
from barnabas.replication.partition import Partition

#: Throttles all replicas of a topic; otherwise they are named as `partition:broker`.
EVERY_REPLICA = "*"


class ReplicationThrottle:
    """Limits what replicas that are not in sync copy, as a reassignment with `--throttle` asks for."""

    def __init__(
        self,
        clock: Clock,
        windows: Windows,
        limit: Callable[[], int],
        replicas: Callable[[Partition], Collection[str]],
    ) -> None:
        """:param limit: Bytes per second, from the configuration.
        :param replicas: The throttled replicas of a partition's topic, from its configs.
        """
        self._clock = clock
        self._windows = windows
        self._limit = limit
        self._replicas = replicas
        self._rate = Rate(windows, max(1, limit()), clock.monotonic_ms())
        self.throttled_bytes = 0

    def applies_to(self, partition: Partition) -> bool:
        replicas = self._replicas(partition)
        return bool(replicas) and (
            EVERY_REPLICA in replicas or f"{partition.index}:{partition.broker_id}" in replicas
        )

    def delay_ms(self, partition: Partition, follower_id: int) -> int:
        """Return for how long a follower must not copy more before this is asked again.

        It is 0 if the rate is below the limit, and for a follower in sync: it never waits.
        """
        if follower_id in partition.isr or not self.applies_to(partition):
            return 0
        self._rate.limit = max(1, self._limit())
        return min(self._rate.record(0, self._clock.monotonic_ms()), self._windows.size_ms)

    def record(self, partition: Partition, size_bytes: int) -> None:
        """Count bytes that were copied."""
        if size_bytes and self.applies_to(partition):
            self._rate.record(size_bytes, self._clock.monotonic_ms())
            self.throttled_bytes += size_bytes

    def statistics(self) -> dict[str, int]:
        return {"throttled_bytes": self.throttled_bytes}
