"""Looking into partitions: forward from an offset, or backward from the end, a page of records at a time."""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.base.clock import Clock
from barnabas.client.consumer.completed_fetch import ConsumedRecord
from barnabas.console.criteria import Criteria
from barnabas.console.scan import Budget, Reading, Scanner
from barnabas.console.topic_view import Reach

#: How long one request looks, and through how many bytes of records.
SCAN_MS = 6_000
SCAN_BYTES = 32 * 1024 * 1024
#: How many offsets of each partition are read at a time, backward, where only some records are wanted.
_SPAN, _SPAN_MAX = 1_000, 10_000
#: The share of the budget that one such span may use.
_SPAN_SHARE = 4


@dataclass
class RecordPage:
    """Records in the order in which they are shown, and offsets by partition from which to go on.

    Where only some records are wanted, all those between the beginning and these offsets are among `records`.
    """

    records: list[ConsumedRecord]
    newer: dict[int, int] = field(default_factory=dict)  #: read forward from here; empty at the end
    older: dict[int, int] = field(default_factory=dict)  #: read backward from here; empty at the beginning
    seen_count: int = 0  #: records that were looked at
    cut_count: int = 0  #: records of which only the beginning was searched
    is_hurried: bool = False  #: stopped for time or size, with more to be looked at


class PartitionShare(NamedTuple):
    """How far a search has come in one partition: offsets from `begin` to `at`, of those up to `limit`."""

    begin: int
    at: int
    limit: int

    @property
    def searched_count(self) -> int:
        """Offsets that were looked at."""
        return abs(self.at - self.begin)

    @property
    def total_count(self) -> int:
        """Offsets from where the search began."""
        return abs(self.limit - self.begin)


class Browser:
    """Reads a topic's partitions for a page."""

    def __init__(self, scanner: Scanner, clock: Clock) -> None:
        self._scanner = scanner
        self._clock = clock

    async def forward(
        self, reach: Mapping[int, Reach], starts: Mapping[int, int], wanted: Criteria, limit: int
    ) -> RecordPage:
        """The first `limit` wanted records from `starts` on, oldest first."""
        begin = within(starts, reach)
        ends = {index: reach[index].end for index in begin}
        budget = self._budget()
        reading = await self._scanner.read(begin, ends, wanted, budget, enough=limit)
        found = _found(reading)
        found.records = _first(heapq.merge(*reading.records.values(), key=_time), limit)
        found.newer = dict(reading.positions)
        for index, shown in _partly_shown(reading.records, found.records).items():
            found.newer[index] = shown[-1].offset + 1 if shown else begin[index]
        found.older = begin
        found.is_hurried = budget.can_discard and len(found.records) < limit
        _drop_ends(found, reach)
        return found

    async def backward(
        self, reach: Mapping[int, Reach], ends: Mapping[int, int], wanted: Criteria, limit: int
    ) -> RecordPage:
        """The last `limit` wanted records before `ends`, newest first.

        Read span by span, as logs can only be read forward. A span that takes too long or too much is left out
        and read again in smaller ones.
        """
        upto = within(ends, reach)
        budget, total = self._budget(), Reading.of(upto)
        span = _SPAN if wanted else limit
        while True:
            begin = {index: max(reach[index].first, at - span) for index, at in total.positions.items()}
            part = budget.part(_SPAN_SHARE)
            reading = await self._scanner.read(begin, total.positions, wanted, part)
            budget.take(part)
            whole = _prepend(total, reading, begin)
            at_first = all(at <= reach[index].first for index, at in total.positions.items())
            if at_first or total.matching_count >= limit or budget.can_discard:
                break
            span = min(2 * span, _SPAN_MAX) if whole else max(1, span // 8)
        found = _found(total)
        newest_first = {index: records[::-1] for index, records in total.records.items()}
        found.records = _first(heapq.merge(*newest_first.values(), key=lambda each: -_time(each)), limit)
        found.older = dict(total.positions)
        for index, shown in _partly_shown(newest_first, found.records).items():
            found.older[index] = shown[-1].offset if shown else upto[index]
        found.newer = upto
        found.is_hurried = budget.can_discard and len(found.records) < limit
        _drop_ends(found, reach)
        return found

    async def one(self, partition: int, offset: int) -> ConsumedRecord | None:
        """The record at that offset; None where there is none (any more).

        :raises KafkaError: OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION.
        """
        reading = await self._scanner.read(
            {partition: offset}, {partition: offset + 1}, Criteria(), self._budget()
        )
        return next((each for each in reading.records[partition] if each.offset == offset), None)

    def _budget(self) -> Budget:
        return Budget(self._clock, SCAN_MS, SCAN_BYTES)


def within(offsets: Mapping[int, int], reach: Mapping[int, Reach]) -> dict[int, int]:
    """The offsets, each within what its partition has."""
    return {index: min(max(at, reach[index].first), reach[index].end) for index, at in offsets.items()}


def shares(
    reach: Mapping[int, Reach], began: Mapping[int, int], at: Mapping[int, int], *, backward: bool
) -> dict[int, PartitionShare]:
    """How far a search has come that began at `began`; an empty `at` stands for all the way."""
    found = {}
    for index, begin in within(began, reach).items():
        limit = reach[index].first if backward else reach[index].end
        found[index] = PartitionShare(begin, at.get(index, limit), limit)
    return found


def _prepend(total: Reading, reading: Reading, begin: Mapping[int, int]) -> bool:
    """Add the partitions of a span that were read to its end; gives whether all were."""
    total.seen_count += reading.seen_count
    total.cut_count += reading.cut_count
    unread = {index for index, end in total.positions.items() if reading.positions[index] < end}
    for index in begin.keys() - unread:
        total.records[index] = reading.records[index] + total.records[index]
        total.positions[index] = begin[index]
    return not unread


def _partly_shown(
    by_partition: Mapping[int, Sequence[ConsumedRecord]], shown: Sequence[ConsumedRecord]
) -> dict[int, list[ConsumedRecord]]:
    """What is shown of each partition of which not everything is."""
    found: dict[int, list[ConsumedRecord]] = {index: [] for index in by_partition}
    for record in shown:
        found[record.partition].append(record)
    return {index: each for index, each in found.items() if len(each) < len(by_partition[index])}


def _found(reading: Reading) -> RecordPage:
    return RecordPage([], seen_count=reading.seen_count, cut_count=reading.cut_count)


def _time(record: ConsumedRecord) -> int:
    return record.timestamp_ms


def _first(records: Iterator[ConsumedRecord], limit: int) -> list[ConsumedRecord]:
    return [record for record, _ in zip(records, range(limit), strict=False)]


def _drop_ends(found: RecordPage, reach: Mapping[int, Reach]) -> None:
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
