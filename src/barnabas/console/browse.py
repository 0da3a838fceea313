"""Reads partitions forward from an offset or backward from the end, one page of records at a time."""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.base.clock import Clock
from barnabas.client.consumer.completed_fetch import ConsumedRecord
from barnabas.console.criteria import Criteria
from barnabas.console.scan import Budget, Reading, Scanner
from barnabas.console.topic_view import Reach

#: Time and bytes that one request may spend on reading.
SCAN_MS = 6_000
SCAN_BYTES = 32 * 1024 * 1024
#: Offsets of each partition that are read at a time, backward, when records are filtered.
_SPAN, _SPAN_MAX = 1_000, 10_000
#: The share of the budget that one such read may use.
_SPAN_SHARE = 4


@dataclass
class RecordPage:
    """Records in the order of display, and offsets by partition from which to continue.

    With a filter, `records` has all matching records between the start and these offsets.
    """

    records: list[ConsumedRecord]
    newer: dict[int, int] = field(default_factory=dict)  #: read forward from here; empty at the end
    older: dict[int, int] = field(default_factory=dict)  #: read backward from here; empty at the beginning
    seen_count: int = 0  #: records that were searched
    cut_count: int = 0  #: records of which only the beginning was searched
    is_hurried: bool = False  #: stopped by the budget before the end


class PartitionShare(NamedTuple):
    """The progress of a search in one partition: offsets from `begin` to `at`, out of those up to `limit`."""

    begin: int
    at: int
    limit: int

    @property
    def searched_count(self) -> int:
        return abs(self.at - self.begin)

    @property
    def total_count(self) -> int:
        """Number of offsets from the start of the search."""
        return abs(self.limit - self.begin)


class Browser:
    """Reads a topic's partitions for a page."""

    def __init__(self, scanner: Scanner, clock: Clock) -> None:
        self._scanner = scanner
        self._clock = clock

    async def forward(
        self, reach: Mapping[int, Reach], starts: Mapping[int, int], wanted: Criteria, limit: int
    ) -> RecordPage:
        """The first `limit` matching records from `starts` on, oldest first."""
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
        """The last `limit` matching records before `ends`, newest first.

        Logs can only be read forward, so this reads span by span. A span that exceeds its budget is dropped and read
        again in smaller ones.
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
        """The record at that offset; None if there is none.

        :raises KafkaError: OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION.
        """
        reading = await self._scanner.read(
            {partition: offset}, {partition: offset + 1}, Criteria(), self._budget()
        )
        return next((each for each in reading.records[partition] if each.offset == offset), None)

    def _budget(self) -> Budget:
        return Budget(self._clock, SCAN_MS, SCAN_BYTES)


def within(offsets: Mapping[int, int], reach: Mapping[int, Reach]) -> dict[int, int]:
    """The offsets, limited to the range of each partition."""
    return {index: min(max(at, reach[index].first), reach[index].end) for index, at in offsets.items()}


def shares(
    reach: Mapping[int, Reach], began: Mapping[int, int], at: Mapping[int, int], *, backward: bool
) -> dict[int, PartitionShare]:
    """The progress of a search that began at `began`; an empty `at` means that it is complete."""
    found = {}
    for index, begin in within(began, reach).items():
        limit = reach[index].first if backward else reach[index].end
        found[index] = PartitionShare(begin, at.get(index, limit), limit)
    return found


def _prepend(total: Reading, reading: Reading, begin: Mapping[int, int]) -> bool:
    """Prepend the completely read partitions of a span; return whether all were complete."""
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
    """The offsets to continue from, of partitions that are not shown completely."""
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
    """Remove links without records behind them."""
    if all(offset >= reach[index].end for index, offset in found.newer.items()):
        found.newer = {}
    if all(offset <= reach[index].first for index, offset in found.older.items()):
        found.older = {}


def cursor(offsets: Mapping[int, int]) -> str:
    """Offsets by partition in the form of a query parameter: `0:15,1:7`."""
    return ",".join(f"{index}:{offset}" for index, offset in sorted(offsets.items()))


def parse_cursor(text: str, partitions: Iterable[int]) -> dict[int, int]:
    """The offsets in a cursor for these partitions; invalid ones are ignored."""
    known = set(partitions)
    offsets = {}
    for part in text.split(","):
        index, _, offset = part.partition(":")
        if _is_number(index) and _is_number(offset) and int(index) in known:
            offsets[int(index)] = int(offset)
    return offsets


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20
