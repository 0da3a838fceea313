"""Samples the lags of groups whose pages are open, in memory."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.base.clock import Clock
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.group_lags import GroupLags, LagTotal, lag_by_topic, lags_of
from barnabas.wire.errors import KafkaError

EVERY_MS = 15_000
SAMPLES_MAX = 240  #: one hour
GROUPS_MAX = 200
#: The shortest interval between samples that pages take themselves.
_CLOSEST_MS = 4_000
#: A group is dropped when its pages have not been opened for this long.
_EXPIRY_MS = 60 * 60_000


class LagSample(NamedTuple):
    """The lag of each topic of a group at a time (ms since the epoch)."""

    time_ms: int
    lags: Mapping[str, LagTotal]

    @property
    def total(self) -> int:
        """The sum over topics; a lower bound if the lag of a partition is unknown."""
        return sum(each.records_count for each in self.lags.values())

    @property
    def is_lower_bound(self) -> bool:
        """Whether the lag of a partition is unknown."""
        return any(each.unknown_count for each in self.lags.values())


class LagSampler:
    """Samples groups of one principal in the background, from the first page until `stop`."""

    def __init__(self, cluster: ClusterClient, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._samples: OrderedDict[str, deque[LagSample]] = OrderedDict()  #: the least recently opened first
        self._looked_ms: dict[str, int] = {}
        self._sampling: asyncio.Task[None] | None = None
        self._failed_count = 0

    def look(self, lags: GroupLags) -> None:
        """Record what a page of these groups shows, and keep sampling them."""
        now_ms = self._clock.monotonic_ms()
        for name in lags:
            self._samples.setdefault(name, deque(maxlen=SAMPLES_MAX))
            self._samples.move_to_end(name)
            self._looked_ms[name] = now_ms
        while len(self._samples) > GROUPS_MAX:
            self._remove(next(iter(self._samples)))
        self._keep(lags)
        if self._sampling is None or self._sampling.done():
            self._sampling = asyncio.create_task(self._sample_always())

    def of(self, name: str) -> Sequence[LagSample]:
        """The samples of a group, oldest first."""
        return list(self._samples.get(name, ()))

    async def sample(self) -> None:
        """Take one sample of all groups whose pages were opened recently."""
        now_ms = self._clock.monotonic_ms()
        for name in [name for name, looked_ms in self._looked_ms.items() if now_ms - looked_ms >= _EXPIRY_MS]:
            self._remove(name)
        self._keep(await lags_of(self._cluster, list(self._samples)))

    async def stop(self) -> None:
        """Stop sampling and drop all samples."""
        if self._sampling is not None:
            self._sampling.cancel()
            await asyncio.wait([self._sampling])
        self._samples.clear()
        self._looked_ms.clear()

    def statistics(self) -> dict[str, int]:
        samples_count = sum(map(len, self._samples.values()))
        return {"groups": len(self._samples), "samples": samples_count, "failed": self._failed_count}

    async def _sample_always(self) -> None:
        while self._samples:
            await asyncio.sleep(EVERY_MS / 1000)
            try:
                await self.sample()
            except (
                ConnectionError,
                KafkaError,
                TimeoutError,
            ):  # pages show the error; here it is a gap in the plot
                self._failed_count += 1

    def _keep(self, lags: GroupLags) -> None:
        now_ms = self._clock.wall_ms()
        for name, each in lags.items():
            samples = self._samples.get(name)
            if samples is None or isinstance(each, KafkaError):
                continue
            if not samples or now_ms - samples[-1].time_ms >= _CLOSEST_MS:
                samples.append(LagSample(now_ms, lag_by_topic(each)))

    def _remove(self, name: str) -> None:
        del self._samples[name]
        del self._looked_ms[name]
