"""Throughput: end offsets are sampled while the page is open."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import LATEST, ListedOffset
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.metadata import NO_LEADER

#: The shortest interval between samples, and the largest share of the time that sampling may take.
INTERVAL_MS = 2_500
_COST_SHARE = 10
#: After a longer pause earlier samples do not count.
_PAUSE_MS = 60_000
_METADATA_MS = 60_000
_HISTORY_MAX = 60
_BUSIEST_MAX = 5


@dataclass(frozen=True)
class Rates:
    """Records per second: of the cluster now (None: unknown), over time, and of the busiest topics."""

    now: float | None
    history: tuple[float, ...]
    busiest: tuple[tuple[str, float], ...]
    partitions_count: int


class Throughput:
    """Samples the end offsets of all partitions that a principal may see."""

    def __init__(self, admin: Admin, clock: Clock) -> None:
        self._admin = admin
        self._cluster: ClusterClient = admin.cluster
        self._clock = clock
        self._lock = asyncio.Lock()
        self._ends: Mapping[TopicPartition, int] = {}
        self._sampled_ms: int | None = None
        self._cost_ms = 0
        self._refreshed_ms: int | None = None
        self._history: deque[float] = deque(maxlen=_HISTORY_MAX)
        self._busiest: tuple[tuple[str, float], ...] = ()

    async def rates(self) -> Rates:
        """The current rates, after a new sample if one is due.

        :raises BrokerConnectionError: When no broker responds.
        """
        async with self._lock:
            now_ms = self._clock.monotonic_ms()
            age_ms = None if self._sampled_ms is None else now_ms - self._sampled_ms
            if age_ms is None or age_ms >= max(INTERVAL_MS, _COST_SHARE * self._cost_ms):
                await self._sample(now_ms, age_ms)
        now = self._history[-1] if self._history else None
        return Rates(now, tuple(self._history), self._busiest, len(self._ends))

    async def _sample(self, now_ms: int, age_ms: int | None) -> None:
        ends = await self._ask(now_ms)
        if age_ms is not None and age_ms <= _PAUSE_MS:
            by_topic = written(self._ends, ends)
            self._history.append(sum(by_topic.values()) * 1000 / age_ms)
            busiest = sorted(by_topic.items(), key=lambda each: -each[1])[:_BUSIEST_MAX]
            self._busiest = tuple((topic, count * 1000 / age_ms) for topic, count in busiest)
        else:
            self._history.clear()
            self._busiest = ()
        self._ends, self._sampled_ms = ends, now_ms
        self._cost_ms = self._clock.monotonic_ms() - now_ms

    async def _ask(self, now_ms: int) -> dict[TopicPartition, int]:
        if self._refreshed_ms is None or now_ms - self._refreshed_ms >= _METADATA_MS:
            await self._cluster.refresh()
            self._refreshed_ms = now_ms
        partitions = [
            TopicPartition(topic.name, each.partition_index)
            for topic in self._cluster.metadata.topics.values()
            if topic.error is None
            for each in topic.partitions
            if each.leader != NO_LEADER
        ]
        listed = await self._admin.list_offsets(dict.fromkeys(partitions, LATEST)) if partitions else {}
        return {tp: each.offset for tp, each in listed.items() if isinstance(each, ListedOffset)}


def written(before: Mapping[TopicPartition, int], after: Mapping[TopicPartition, int]) -> dict[str, int]:
    """Records written to each topic between two samples; a recreated topic counts from its beginning."""
    counts: defaultdict[str, int] = defaultdict(int)
    for tp, end in after.items():
        begin = before.get(tp)
        if begin is not None and end != begin:
            counts[tp.topic] += end - begin if end > begin else end
    return dict(counts)
