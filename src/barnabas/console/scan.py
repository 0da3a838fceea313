"""Reads and searches records for pages, within a budget, and outside the event loop.

The console may run in a broker's process, whose event loop waits while other threads run Python. So one thread at a
time decodes and searches records, and pauses every few milliseconds.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.base.buffers import Buffer
from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.completed_fetch import ConsumedRecord, read_fetched
from barnabas.client.consumer.fetch_messages import FetchLimits
from barnabas.client.consumer.fetching import fetch_partition
from barnabas.client.core.cluster import ClusterClient
from barnabas.console.criteria import Criteria
from barnabas.wire.isolation import Isolation
from barnabas.wire.messages.fetch import PartitionData
from barnabas.wire.records.batch import iterate_headers

Decode = Callable[[ConsumedRecord], ConsumedRecord]

_LANE = "fetch"
_MAX_WAIT_MS = 200
#: Bytes of one round, for all partitions together and for one.
_ROUND_BYTES = 8 * 1024 * 1024
_FETCH_BYTES_MIN, _FETCH_BYTES_MAX = 16 * 1024, 128 * 1024
_CONCURRENT_FETCHES_MAX = 4
#: How long a thread searches before it pauses, and for how long.
_WORK_MS, _PAUSE_S = 2, 0.001


class Budget:
    """How long and how much may still be read; once spent it stays spent."""

    def __init__(self, clock: Clock, limit_ms: int, bytes_max: int) -> None:
        self.clock = clock
        self.deadline_ms = clock.monotonic_ms() + limit_ms
        self.bytes_max = bytes_max
        self.used_bytes = 0
        self.can_discard = False

    def use(self, size_bytes: int) -> None:
        """Count bytes that were read."""
        self.used_bytes += size_bytes
        late = self.clock.monotonic_ms() >= self.deadline_ms
        self.can_discard = self.can_discard or late or self.used_bytes > self.bytes_max

    def part(self, share: int) -> "Budget":
        """One of several equal parts; `take` back what it has used."""
        left_ms = max(0, self.deadline_ms - self.clock.monotonic_ms())
        return Budget(self.clock, left_ms // share, self.bytes_max // share)

    def take(self, part: "Budget") -> None:
        """Count what a part has used."""
        self.use(part.used_bytes)


@dataclass
class Reading:
    """Matching records by partition, the offsets up to which everything was searched, and how much that was."""

    records: dict[int, list[ConsumedRecord]]
    positions: dict[int, int]
    seen_count: int = 0
    cut_count: int = 0  #: records of which only the beginning was searched

    @classmethod
    def of(cls, positions: Mapping[int, int]) -> "Reading":
        """An empty reading at these offsets."""
        return cls({index: [] for index in positions}, dict(positions))

    @property
    def matching_count(self) -> int:
        return sum(map(len, self.records.values()))


class _Chunk(NamedTuple):
    """The result of one fetch."""

    records: list[ConsumedRecord]
    next_offset: int
    seen_count: int
    cut_count: int


class Scanner:
    """Reads partitions of one topic. `turns` is shared by all searches of a console."""

    def __init__(
        self,
        cluster: ClusterClient,
        turns: asyncio.Semaphore,
        topic: str,
        isolation: Isolation,
        decode: Decode | None = None,
    ) -> None:
        """:param decode: Decodes keys and values before they are searched and returned; may block."""
        self._cluster = cluster
        self._turns = turns
        self._topic = topic
        self._isolation = isolation
        self._decode = decode

    async def read(
        self,
        begin: Mapping[int, int],
        ends: Mapping[int, int],
        wanted: Criteria,
        budget: Budget,
        enough: int | None = None,
    ) -> Reading:
        """Read from `begin` to `ends`, until the budget is spent, or a round over all partitions found `enough`.

        :raises KafkaError: OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION, CORRUPT_MESSAGE and others.
        """
        reading = Reading.of(begin)
        while not budget.can_discard and (enough is None or reading.matching_count < enough):
            open_partitions = deque(index for index in begin if reading.positions[index] < ends[index])
            if not open_partitions:
                break
            limits = _limits(len(open_partitions))
            while open_partitions and not budget.can_discard:
                group = [
                    open_partitions.popleft()
                    for _ in range(min(len(open_partitions), _CONCURRENT_FETCHES_MAX))
                ]
                await asyncio.gather(
                    *(self._advance(reading, each, ends[each], wanted, budget, limits) for each in group)
                )
        return reading

    async def _advance(
        self, reading: Reading, index: int, end: int, wanted: Criteria, budget: Budget, limits: FetchLimits
    ) -> None:
        position = reading.positions[index]
        tp = TopicPartition(self._topic, index)
        data = await self._fetch(tp, position, limits)
        if not data.records and position < self._visible_end(data):
            budget.use(0)  # throttled by a quota: fetch again while there is time
            return
        async with self._turns:
            limit = _Limit(end, budget, wanted)
            chunk = await asyncio.to_thread(
                _chunk, tp, data, position, self._isolation, limit, self._decode or _unchanged
            )
        reading.records[index] += chunk.records
        reading.positions[index] = chunk.next_offset if chunk.next_offset > position else end
        reading.seen_count += chunk.seen_count
        reading.cut_count += chunk.cut_count

    def _visible_end(self, data: PartitionData) -> int:
        committed = self._isolation is Isolation.READ_COMMITTED
        return data.last_stable_offset if committed else data.high_watermark

    async def _fetch(self, tp: TopicPartition, position: int, limits: FetchLimits) -> PartitionData:
        return await self._cluster.retrying(
            lambda: fetch_partition(self._cluster, tp, position, limits, self._isolation, lane=_LANE)
        )


def _limits(partitions_count: int) -> FetchLimits:
    size_bytes = min(max(_ROUND_BYTES // partitions_count, _FETCH_BYTES_MIN), _FETCH_BYTES_MAX)
    return FetchLimits(max_wait_ms=_MAX_WAIT_MS, max_bytes=size_bytes, partition_max_bytes=size_bytes)


class _Limit(NamedTuple):
    """The records of a fetch that are read."""

    end: int
    budget: Budget
    wanted: Criteria


def _unchanged(record: ConsumedRecord) -> ConsumedRecord:
    return record


def _chunk(
    tp: TopicPartition,
    data: PartitionData,
    position: int,
    isolation: Isolation,
    limit: _Limit,
    decode: Decode,
) -> _Chunk:
    """The matching records before the end, or those up to the end of the budget. Runs in a thread."""
    end, budget, wanted = limit
    pause_ms = budget.clock.monotonic_ms() + _WORK_MS
    data.records = before(data.records or b"", end)
    records, next_offset = read_fetched(tp, data, position, isolation)
    matching: list[ConsumedRecord] = []
    seen_count = cut_count = 0
    for record in records:
        if record.offset >= end:
            break
        seen_count += 1
        record = decode(record)
        cut_count += wanted.cuts(record)
        if wanted.matches(record):
            matching.append(record)
        budget.use(_size_bytes(record))
        if budget.can_discard:
            return _Chunk(matching, record.offset + 1, seen_count, cut_count)
        if budget.clock.monotonic_ms() >= pause_ms:
            time.sleep(_PAUSE_S)
            pause_ms = budget.clock.monotonic_ms() + _WORK_MS
    return _Chunk(matching, max(position, min(next_offset, end)), seen_count, cut_count)


def before(batches: Buffer, end: int) -> Buffer:
    """Return the batches that begin before `end`, so that others are not decoded."""
    for position, header in iterate_headers(batches):
        if header.base_offset >= end:
            return memoryview(batches)[:position]
    return batches


def _size_bytes(record: ConsumedRecord) -> int:
    headers_bytes = sum(len(name) + len(data or b"") for name, data in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers_bytes
