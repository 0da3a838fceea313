import struct
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from barnabas.base import disk
from barnabas.base.buffers import Buffer
from barnabas.log.segments.offset_index import OffsetIndex
from barnabas.log.segments.time_index import TimeIndex


@pytest.fixture
def offset_index(tmp_path: Path) -> OffsetIndex:
    return OffsetIndex(tmp_path / "i.index", 100)


@pytest.fixture
def time_index(tmp_path: Path) -> TimeIndex:
    return TimeIndex(tmp_path / "i.timeindex", 100)


def test_the_offset_index_finds_the_last_entry_at_or_before(offset_index: OffsetIndex) -> None:
    offset_index.append(105, 1000)
    offset_index.append(110, 2000)
    assert offset_index.lookup(104) is None
    assert offset_index.lookup(105) == (105, 1000)
    assert offset_index.lookup(109) == (105, 1000)
    assert offset_index.lookup(10_000) == (110, 2000)
    assert offset_index.last() == (110, 2000)


def test_the_offset_index_is_written_in_kafkas_format(offset_index: OffsetIndex) -> None:
    offset_index.append(105, 1000)
    offset_index.append(110, 2000)
    assert not offset_index.exists
    offset_index.release()
    assert offset_index.path.read_bytes() == struct.pack(">iiii", 5, 1000, 10, 2000)
    assert offset_index.last() == (110, 2000)


def test_the_time_index_is_written_in_kafkas_format(time_index: TimeIndex) -> None:
    time_index.append(5_000, 107)
    time_index.append(5_000, 109)
    time_index.append(4_000, 111)
    time_index.append(6_000, 113)
    time_index.save()
    assert time_index.path.read_bytes() == struct.pack(">qiqi", 5_000, 7, 6_000, 13)


def test_the_time_index_finds_the_last_entry_at_or_before(time_index: TimeIndex) -> None:
    assert time_index.last() == (-1, 100)
    time_index.append(5_000, 107)
    time_index.append(6_000, 113)
    assert time_index.lookup(4_999) == (-1, 100)
    assert time_index.lookup(5_999) == (5_000, 107)
    assert time_index.lookup(6_000) == (6_000, 113)


def test_zeros_after_the_entries_are_ignored_as_preallocated_space(
    offset_index: OffsetIndex, time_index: TimeIndex
) -> None:
    offset_index.path.write_bytes(struct.pack(">iiii", 5, 256, 10, 1 << 24) + bytes(10_000))
    time_index.path.write_bytes(struct.pack(">qi", 1 << 32, 1 << 16) + bytes(12_000))
    assert offset_index.count == 2
    assert offset_index.last() == (110, 1 << 24)
    assert time_index.count == 1
    assert time_index.last() == (1 << 32, 100 + (1 << 16))


def test_the_last_entry_is_found_before_zeros_without_keeping_the_file(
    offset_index: OffsetIndex, time_index: TimeIndex
) -> None:
    assert (offset_index.last(), time_index.last()) == (None, (-1, 100))
    offset_index.path.write_bytes(struct.pack(">iiii", 5, 256, 10, 1 << 24) + bytes(10_000))
    time_index.path.write_bytes(struct.pack(">qi", 1 << 32, 1 << 16) + bytes(12_000))
    assert offset_index.last() == (110, 1 << 24)
    assert time_index.last() == (1 << 32, 100 + (1 << 16))
    assert (offset_index._held, time_index._held) == (None, None)


def test_an_entry_with_timestamp_0_is_not_preallocated_space(time_index: TimeIndex) -> None:
    time_index.append(0, 100)
    time_index.release()
    assert (time_index.count, time_index.last()) == (1, (0, 100))


def test_a_file_cut_inside_an_entry_keeps_the_whole_ones(offset_index: OffsetIndex) -> None:
    offset_index.path.write_bytes(struct.pack(">iiii", 5, 256, 10, 512)[:-1])
    assert offset_index.last() == (105, 256)


def test_truncation_drops_entries_from_the_offset_on(
    offset_index: OffsetIndex, time_index: TimeIndex
) -> None:
    for step in range(1, 6):
        offset_index.append(100 + step * 2, step * 50)
        time_index.append(1000 * step, 100 + step * 2)
    offset_index.truncate_to(106)
    time_index.truncate_to(107)
    assert offset_index.last() == (104, 100)
    assert time_index.last() == (3_000, 106)
    offset_index.truncate_to(0)
    assert offset_index.last() is None


def test_a_time_index_is_full_when_only_the_slot_for_closing_is_left(
    offset_index: OffsetIndex, time_index: TimeIndex
) -> None:
    assert not offset_index.is_full(15)
    assert not time_index.is_full(35)
    offset_index.append(101, 1)
    time_index.append(1, 101)
    assert offset_index.is_full(15)
    assert time_index.is_full(35)
    assert not time_index.is_full(36)


@given(offsets=st.lists(st.integers(0, 1_000), unique=True, max_size=40), target=st.integers(-5, 1_010))
def test_lookup_is_the_greatest_lower_bound(offsets: list[int], target: int) -> None:
    index = OffsetIndex(Path("/nonexistent/never.index"), 0)
    for offset in sorted(offsets):
        index.append(offset, offset * 7)
    expected = max((offset for offset in offsets if offset <= target), default=None)
    assert index.lookup(target) == (None if expected is None else (expected, expected * 7))


def test_a_released_index_is_continued_without_reading_or_writing_it_again(
    time_index: TimeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10_000):
        time_index.append(number, 100 + number)
    time_index.release()
    written: list[int] = []
    append_to_file = disk.append_to_file

    def count(path: Path, data: Buffer) -> None:
        written.append(len(data))
        append_to_file(path, data)

    monkeypatch.setattr(disk, "append_to_file", count)
    monkeypatch.setattr(disk, "write_file", None)
    with monkeypatch.context() as unreadable:
        unreadable.setattr(Path, "read_bytes", None)
        for number in (10_000, 10_001):
            time_index.append(number, 100 + number)
            assert not time_index.is_full(1 << 20)
            assert time_index.last() == (number, 100 + number)
            time_index.release()
        assert time_index.last() == (10_001, 10_101)
    assert written == [12, 12]
    assert time_index.lookup(9_999) == (9_999, 10_099)
    assert TimeIndex(time_index.path, 100).count == 10_002


def test_preallocated_space_is_removed_when_an_index_is_continued(offset_index: OffsetIndex) -> None:
    offset_index.path.write_bytes(struct.pack(">ii", 5, 256) + bytes(10_000))
    offset_index.append(110, 512)
    offset_index.release()
    assert offset_index.path.read_bytes() == struct.pack(">iiii", 5, 256, 10, 512)


class IndexMachine(RuleBasedStateMachine):
    """An index beside a list of the entries that it should have."""

    @initialize()
    def create(self) -> None:
        self.directory = TemporaryDirectory()
        self.index = self.reopened()
        self.expected: list[tuple[int, int]] = []

    def teardown(self) -> None:
        self.directory.cleanup()

    def reopened(self) -> TimeIndex:
        return TimeIndex(Path(self.directory.name) / "x.timeindex", 100)

    @rule(count=st.integers(1, 3))
    def append(self, count: int) -> None:
        for _ in range(count):
            timestamp_ms, offset = self.expected[-1] if self.expected else (-1, 99)
            self.expected.append((timestamp_ms + 2, offset + 3))
            self.index.append(*self.expected[-1])

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        end_offset = 100 + int(share * 3 * len(self.expected))
        self.expected = [entry for entry in self.expected if entry[1] < end_offset]
        self.index.truncate_to(end_offset)

    @rule()
    def clear(self) -> None:
        self.expected = []
        self.index.clear()

    @rule(reopens=st.booleans())
    def release(self, reopens: bool) -> None:
        self.index.release()
        content = b"".join(struct.pack(">qi", stamp, offset - 100) for stamp, offset in self.expected)
        assert (self.index.path.read_bytes() if self.index.exists else b"") == content
        if reopens:
            self.index = self.reopened()

    @rule()
    def save(self) -> None:
        self.index.save()

    @rule()
    def last(self) -> None:
        assert self.index.last() == (self.expected[-1] if self.expected else (-1, 100))

    @rule()
    def count(self) -> None:
        assert self.index.count == len(self.expected)

    @rule(timestamp_ms=st.integers(0, 30))
    def lookup(self, timestamp_ms: int) -> None:
        found = [entry for entry in self.expected if entry[0] <= timestamp_ms]
        assert self.index.lookup(timestamp_ms) == (found[-1] if found else (-1, 100))


TestIndexAgainstModel = IndexMachine.TestCase
