"""Pages of records from partitions in memory: none is missing or duplicated, and the event loop is not blocked."""

import asyncio
import threading
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.completed_fetch import ConsumedRecord
from barnabas.client.consumer.fetch_messages import FetchLimits
from barnabas.client.core.cluster import ClusterClient
from barnabas.console import browse
from barnabas.console.browse import Browser, PartitionShare, RecordPage, cursor, parse_cursor, shares
from barnabas.console.criteria import Criteria
from barnabas.console.scan import Budget, Scanner, before
from barnabas.console.topic_view import Reach
from barnabas.wire.isolation import Isolation
from barnabas.wire.messages.fetch import PartitionData
from barnabas.wire.records.record import Record, encode_batch

#: Offsets of the records by partition, with gaps from compaction.
Logs = Mapping[int, Sequence[int]]
LOGS = st.dictionaries(st.integers(0, 3), st.lists(st.integers(0, 60), unique=True).map(sorted), min_size=1)


class MemoryScanner(Scanner):
    """Fetches two records at a time from logs in memory; values are the offsets."""

    def __init__(self, logs: Logs, value_bytes: int = 0, *, throttles: bool = False) -> None:
        super().__init__(ClusterClient("127.0.0.1:1"), asyncio.Semaphore(1), "t", Isolation.READ_UNCOMMITTED)
        self._logs = logs
        self._value_bytes = value_bytes
        self._throttles = throttles  #: every other response is empty, as for a client above its quota
        self.is_throttled = False

    async def _fetch(self, tp: TopicPartition, position: int, limits: FetchLimits) -> PartitionData:
        log = self._logs[tp.partition]
        at = [each for each in log if each >= position][:2]
        self.is_throttled = not self.is_throttled and self._throttles
        if not at or self.is_throttled:
            end = max(log, default=-1) + 1
            return PartitionData(partition_index=tp.partition, high_watermark=end)
        value = b"x" * self._value_bytes
        records = [Record(each, each * 10 + tp.partition, None, b"%d " % each + value) for each in at]
        data = bytes(encode_batch(records, base_offset=position, keep_offsets=True))
        return PartitionData(partition_index=tp.partition, records=data)


def reach_of(logs: Logs) -> dict[int, Reach]:
    return {index: Reach(0, max(offsets, default=-1) + 1) for index, offsets in logs.items()}


def pages_of(
    logs: Logs, criteria: Criteria, limit: int, *, backward: bool, value_bytes: int = 0
) -> list[RecordPage]:
    """Return every page by following the links."""

    async def look() -> list[RecordPage]:
        browser, reach = Browser(MemoryScanner(logs, value_bytes), ManualClock()), reach_of(logs)
        at = {index: each.end if backward else each.first for index, each in reach.items()}
        pages: list[RecordPage] = []
        while at:
            page = browser.backward if backward else browser.forward
            pages.append(await page(reach, at, criteria, limit))
            at = pages[-1].older if backward else pages[-1].newer
        return pages

    return asyncio.run(look())


def offsets_of(records: Sequence[ConsumedRecord]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for each in records:
        found.setdefault(each.partition, []).append(each.offset)
    return found


@given(LOGS, st.integers(1, 7), st.booleans(), st.sampled_from(["", "1", "3"]))
def test_pages_have_every_matching_record_once_and_in_order(
    logs: Logs, limit: int, backward: bool, text: str
) -> None:
    pages = pages_of(logs, Criteria(value=text), limit, backward=backward)
    found = offsets_of([each for page in pages for each in page.records])
    expected = {index: [each for each in offsets if text in str(each)] for index, offsets in logs.items()}
    if backward:
        expected = {index: offsets[::-1] for index, offsets in expected.items()}
    assert found == {index: offsets for index, offsets in expected.items() if offsets}
    assert all(len(page.records) <= limit for page in pages)


@pytest.mark.parametrize("backward", [True, False])
def test_records_of_several_partitions_are_ordered_by_time(backward: bool) -> None:
    logs = {0: range(0, 40, 2), 1: range(1, 40, 2)}
    pages = pages_of(logs, Criteria(), 10, backward=backward)
    order = [each.offset for page in pages for each in page.records]
    assert order == sorted(range(40), reverse=backward)


def test_a_page_of_large_records_stops_and_the_next_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browse, "SCAN_BYTES", 4_000)
    logs = {0: range(30), 1: range(30)}
    pages = pages_of(logs, Criteria(value="7"), 50, backward=True, value_bytes=300)
    assert [page.is_hurried for page in pages] == [*([True] * (len(pages) - 1)), pages[-1].is_hurried]
    assert len(pages) > 5
    assert offsets_of([each for page in pages for each in page.records]) == {0: [27, 17, 7], 1: [27, 17, 7]}


def test_the_event_loop_is_not_blocked_by_a_search() -> None:
    searching, answered = threading.Event(), threading.Event()

    class Slow(Criteria):
        def matches(self, record: ConsumedRecord) -> bool:
            searching.set()
            return answered.wait(30)

    async def look() -> RecordPage:
        browser = Browser(MemoryScanner({0: [0]}), ManualClock())
        page = asyncio.ensure_future(browser.forward({0: Reach(0, 1)}, {0: 0}, Slow(value="x"), 5))
        await asyncio.to_thread(searching.wait, 30)
        answered.set()  # by a loop that is not blocked
        return await page

    assert len(asyncio.run(look()).records) == 1


def test_records_held_back_by_a_quota_are_awaited() -> None:
    async def look() -> RecordPage:
        browser = Browser(MemoryScanner({0: range(20)}, throttles=True), ManualClock())
        return await browser.backward({0: Reach(0, 20)}, {0: 20}, Criteria(value="1"), 50)

    found = asyncio.run(look())
    assert [each.offset for each in found.records] == [*range(19, 9, -1), 1]
    assert found.seen_count == 20


def test_batches_after_the_end_are_not_decoded() -> None:
    first, second = (bytes(encode_batch([Record(at, 0, None, b"v")], base_offset=at)) for at in (5, 6))
    assert bytes(before(first + second, 6)) == first
    assert bytes(before(first + second, 7)) == first + second
    assert bytes(before(first, 5)) == b""


def test_a_budget_limits_bytes_and_time() -> None:
    clock = ManualClock()
    budget = Budget(clock, 1_000, 100)
    part = budget.part(4)
    part.use(26)
    assert (part.can_discard, budget.can_discard) == (True, False)
    budget.take(part)
    budget.use(74)
    assert not budget.can_discard
    clock.advance(1_000)
    budget.use(0)
    assert budget.can_discard


def test_the_progress_of_a_search_counts_from_its_start() -> None:
    reach = {0: Reach(10, 110), 1: Reach(0, 50)}
    back = shares(reach, {0: 110, 1: 40}, {0: 85, 1: 40}, backward=True)
    assert back == {0: PartitionShare(110, 85, 10), 1: PartitionShare(40, 40, 0)}
    assert [(each.searched_count, each.total_count) for each in back.values()] == [(25, 100), (0, 40)]
    assert shares(reach, {0: 0}, {}, backward=False)[0].searched_count == 100


def test_a_cursor_round_trips() -> None:
    offsets = {0: 15, 12: 0}
    assert parse_cursor(cursor(offsets), [0, 12]) == offsets
    assert parse_cursor("0:15,x:1,1:-4,3,2:7", [0, 1]) == {0: 15}
