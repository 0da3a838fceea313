"""Looking into partitions: forward from a place, or backward from the end, a page of records at a time."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.fetch_messages import FetchLimits
from barnabas.client.fetched import ConsumedRecord
from barnabas.client.offsets import Isolation
from barnabas.console.topic_view import Reach

#: How many offsets of a partition are looked through at a time where only some records are wanted.
SCAN_RECORDS = 5_000
#: How long, and how much, before what was found is shown.
SCAN_MS = 6_000
SCAN_BYTES = 32 * 1024 * 1024
_LIMITS = FetchLimits(max_wait_ms=200, max_bytes=4 * 1024 * 1024, partition_max_bytes=512 * 1024)

Wanted = Callable[[ConsumedRecord], bool]


@dataclass
class Found:
    """Records in the order in which they are shown, and offsets by partition from which to go on."""

    records: list[ConsumedRecord]
    newer: dict[int, int] = field(default_factory=dict)  #: read forward from here; empty when that is the end
    older: dict[int, int] = field(
        default_factory=dict
    )  #: read backward from here; empty when that is the beginning
    seen_count: int = 0  #: records that were looked at
    is_hurried: bool = False  #: stopped for time or size, with more to be looked at


class Browser:
    """Reads a topic's partitions for a page."""

    def __init__(self, cluster: Cluster, clock: Clock, topic: str, isolation: Isolation) -> None:
        self._cluster = cluster
        self._clock = clock
        self._topic = topic
        self._isolation = isolation

    async def forward(
        self, reach: Mapping[int, Reach], starts: Mapping[int, int], wanted: Wanted | None, limit: int
    ) -> Found:
        """The first `limit` wanted records from `starts` on, oldest first."""
        begin = {index: min(max(starts[index], reach[index].first), reach[index].end) for index in starts}
        ends = {index: reach[index].end for index in begin}
        by_partition, positions, found = await self._read(begin, ends, wanted, limit)
        merged = heapq.merge(*by_partition.values(), key=_time)
        found.records = _first(merged, limit)
        shown_until = {each.partition: each.offset + 1 for each in found.records}
        for index in begin:
            whole = sum(each.partition == index for each in found.records) == len(by_partition[index])
            found.newer[index] = positions[index] if whole else shown_until.get(index, begin[index])
        found.older = dict(begin)
        _drop_ends(found, reach)
        return found

    async def backward(
        self, reach: Mapping[int, Reach], ends: Mapping[int, int], wanted: Wanted | None, limit: int
    ) -> Found:
        """The last `limit` wanted records before `ends`, newest first."""
        span = limit if wanted is None else SCAN_RECORDS
        upto = {index: min(max(ends[index], reach[index].first), reach[index].end) for index in ends}
        begin = {index: max(reach[index].first, upto[index] - span) for index in upto}
        by_partition, positions, found = await self._read(begin, upto, wanted, None)
        newest = [list(reversed(records)) for records in by_partition.values()]
        merged = heapq.merge(*newest, key=lambda each: -_time(each))
        found.records = _first(merged, limit)
        oldest = {each.partition: each.offset for each in found.records}
        for index in begin:
            whole = sum(each.partition == index for each in found.records) == len(by_partition[index])
            found.older[index] = begin[index] if whole else oldest.get(index, upto[index])
        found.newer = dict(positions if found.is_hurried else upto)
        _drop_ends(found, reach)
        return found

    async def one(self, partition: int, offset: int) -> ConsumedRecord | None:
        """The record at that offset; None where there is none (any more).

        :raises KafkaError: OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION.
        """
        begin = {partition: offset}
        by_partition, _, _ = await self._read(begin, {partition: offset + 1}, None, 1)
        return next((each for each in by_partition[partition] if each.offset == offset), None)

    async def _read(
        self, begin: Mapping[int, int], ends: Mapping[int, int], wanted: Wanted | None, enough: int | None
    ) -> tuple[dict[int, list[ConsumedRecord]], dict[int, int], Found]:
        """Wanted records by partition, where reading stopped, and how much was looked at."""
        by_partition: dict[int, list[ConsumedRecord]] = {index: [] for index in begin}
        found = Found([])
        open_starts = {
            TopicPartition(self._topic, index): begin[index] for index in begin if begin[index] < ends[index]
        }
        size_bytes = matching_count = 0
        give_up_ms = self._clock.monotonic_ms() + SCAN_MS
        async with Consumer(self._cluster, isolation=self._isolation, limits=_LIMITS) as consumer:
            await consumer.assign(open_starts)
            for place, position in consumer.positions.items():
                position.end = ends[place.partition]
            while not consumer.finished and (enough is None or matching_count < enough):
                left_ms = give_up_ms - self._clock.monotonic_ms()
                if left_ms <= 0 or size_bytes > SCAN_BYTES:
                    found.is_hurried = True
                    break
                for record in await consumer.poll(left_ms):
                    found.seen_count += 1
                    size_bytes += len(record.value or b"") + len(record.key or b"")
                    size_bytes += sum(len(name) + len(data or b"") for name, data in record.headers)
                    if wanted is None or wanted(record):
                        by_partition[record.partition].append(record)
                        matching_count += 1
            positions = {place.partition: each.offset for place, each in consumer.positions.items()}
        return by_partition, {**begin, **positions}, found


def _time(record: ConsumedRecord) -> int:
    return record.timestamp_ms


def _first(records: Iterator[ConsumedRecord], limit: int) -> list[ConsumedRecord]:
    return [record for record, _ in zip(records, range(limit), strict=False)]


def _drop_ends(found: Found, reach: Mapping[int, Reach]) -> None:
    """Forget ways on that lead nowhere."""
    if all(offset >= reach[index].end for index, offset in found.newer.items()):
        found.newer = {}
    if all(offset <= reach[index].first for index, offset in found.older.items()):
        found.older = {}


def cursor(offsets: Mapping[int, int]) -> str:
    """Offsets by partition as an address holds them: `0:15,1:7`."""
    return ",".join(f"{index}:{offset}" for index, offset in sorted(offsets.items()))


def parse_cursor(text: str, partitions: Iterable[int]) -> dict[int, int]:
    """The offsets of those partitions that a cursor names; what cannot be is left out."""
    known = set(partitions)
    offsets = {}
    for part in text.split(","):
        index, _, offset = part.partition(":")
        if _is_number(index) and _is_number(offset) and int(index) in known:
            offsets[int(index)] = int(offset)
    return offsets


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20
