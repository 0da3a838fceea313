import os
from collections.abc import Callable
from mmap import mmap
from pathlib import Path

import pytest

from barnabas.base import disk
from barnabas.base.buffers import Buffer
from barnabas.log.log_config import LogConfig
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.segments.segment import MAP_BYTES_MIN, Segment
from barnabas.log.segments.segments import Segments
from barnabas.wire.records.batch import iterate_headers, read_header
from barnabas.wire.records.record import Record, encode_batch

CONFIG = LogConfig(index_interval_bytes=150)
Append = Callable[[Segment, int, bytes], None]


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    return Segment.create(tmp_path, 100, OpenFiles(4), now_ms=1_000)


@pytest.fixture
def append() -> Append:
    def append_(segment: Segment, offset: int, value: bytes) -> None:
        batch = encode_batch([Record(0, 5_000 + offset, None, value)], base_offset=offset)
        header = read_header(batch)
        segment.append(memoryview(batch), header.last_offset, header.max_timestamp, CONFIG)

    return append_


def test_existing_files_of_the_same_name_are_removed(tmp_path: Path) -> None:
    for suffix in ("log", "index", "timeindex", "txnindex"):
        (tmp_path / f"{7:020d}.{suffix}").write_bytes(b"old")
    Segment.create(tmp_path, 7, OpenFiles(), now_ms=0)
    assert [path.name for path in tmp_path.iterdir()] == [f"{7:020d}.log"]
    assert (tmp_path / f"{7:020d}.log").stat().st_size == 0


def test_an_offset_is_found_at_its_batch_or_the_next_one(segment: Segment, append: Append) -> None:
    for offset in (100, 101, 105):
        append(segment, offset, b"x")
    size_bytes = segment.size_bytes // 3
    segment.close()
    positions = [segment.position_of(offset) for offset in (99, 100, 101, 103, 105, 106)]
    assert positions == [0, 0, size_bytes, 2 * size_bytes, 2 * size_bytes, 3 * size_bytes]


def test_the_indexes_get_an_entry_per_index_interval(segment: Segment, append: Append) -> None:
    for offset in range(100, 112):
        append(segment, offset, b"x" * 30)
    assert segment.offset_index.count == 5
    assert segment.offset_index.last() == (110, 10 * segment.size_bytes // 12)
    assert segment.time_index.last() == (5_110, 110)


def test_files_open_again_after_they_were_closed(segment: Segment, append: Append) -> None:
    append(segment, 100, b"x")
    size_bytes = segment.size_bytes
    segment.close_files()
    append(segment, 101, b"y")
    assert segment.size_bytes == 2 * size_bytes
    assert [header.base_offset for _, header in segment.headers()] == [100, 101]
    assert segment.max_timestamp == (5_101, 101)


def test_segments_that_are_often_closed_write_only_new_index_entries(
    tmp_path: Path, append: Append, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = OpenFiles(2)
    segments = [Segment.create(tmp_path, base, files, now_ms=0) for base in range(0, 4_000, 1_000)]
    for segment in segments:
        for offset in range(400):
            append(segment, segment.base_offset + offset, b"x" * 100)
    written: list[int] = []

    def counted(name: str) -> None:
        write = getattr(disk, name)

        def count(path: Path, data: Buffer) -> None:
            written.append(len(data))
            write(path, data)

        monkeypatch.setattr(disk, name, count)

    counted("append_to_file")
    counted("write_file")
    before_bytes = sum(path.stat().st_size for path in tmp_path.glob("*index"))
    for offset in range(400, 420):
        for segment in segments:
            append(segment, segment.base_offset + offset, b"x" * 100)
    for segment in segments:
        segment.close()
    after_bytes = sum(path.stat().st_size for path in tmp_path.glob("*index"))
    assert sum(written) == after_bytes - before_bytes
    assert [segment.max_timestamp[1] % 1_000 for segment in segments] == [419] * 4


def test_few_bytes_are_copied_and_many_are_mapped(segment: Segment, append: Append) -> None:
    append(segment, 100, b"z" * MAP_BYTES_MIN)
    copied, mapped = segment.view(0, 100), segment.view(0, MAP_BYTES_MIN)
    assert isinstance(copied.obj, bytes)
    assert not isinstance(mapped.obj, bytes)
    assert bytes(mapped[:100]) == bytes(copied)
    assert segment.batch_size_bytes(0) == segment.size_bytes


@pytest.mark.parametrize("position_index", [0, 3, 7])
def test_headers_of_small_and_large_batches_are_found_from_any_batch_on(
    segment: Segment, append: Append, position_index: int
) -> None:
    sizes = [10, 8_000, 100_000, 50, 8_071, 8_131, 1, 20_000, 30, 40]
    for offset, size in enumerate(sizes, 100):
        append(segment, offset, os.urandom(size))
    found = list(segment.headers())
    assert found == list(iterate_headers(segment.path.read_bytes()))
    assert len(found) == len(sizes)
    assert list(segment.headers(found[position_index][0])) == found[position_index:]


def test_headers_end_before_an_incomplete_batch(segment: Segment, append: Append) -> None:
    for offset, size in enumerate([10, 20_000], 100):
        append(segment, offset, b"x" * size)
    for size_bytes in (segment.size_bytes - 1, 10_000, 150):
        segment.cut(size_bytes)
        assert [header.base_offset for _, header in segment.headers()] == [100]


def test_a_file_that_is_shorter_than_its_batches_is_a_disk_error(segment: Segment, append: Append) -> None:
    append(segment, 100, b"x" * MAP_BYTES_MIN)
    os.truncate(segment.path, 200)
    with pytest.raises(OSError, match="has 139 instead of"):
        segment.read(61, 200)
    with pytest.raises(OSError, match="has 0 instead of"):
        segment.view(200, MAP_BYTES_MIN)


@pytest.mark.parametrize("damaged", [False, True])
def test_the_crc_of_a_large_batch_is_checked_to_its_end(
    segment: Segment, append: Append, damaged: bool
) -> None:
    append(segment, 100, os.urandom(2_500_000))
    [(position, header)] = segment.headers()
    if damaged:
        with segment.path.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last[0] ^ 1]))
    assert segment.crc_matches(position, header) is not damaged


def test_a_segment_without_timestamps_has_the_time_of_its_file(segment: Segment) -> None:
    batch = encode_batch([Record(0, -1, None, b"x")], base_offset=100)
    header = read_header(batch)
    segment.append(memoryview(batch), header.last_offset, header.max_timestamp, CONFIG)
    os.utime(segment.path, (50, 50))
    assert segment.max_timestamp == (-1, 100)
    assert segment.largest_timestamp_ms() == 50_000


def test_deleting_renames_all_files(segment: Segment, append: Append, tmp_path: Path) -> None:
    append(segment, 100, b"x")
    segment.close()
    (tmp_path / f"{100:020d}.txnindex").touch()
    names = {path.name for path in segment.mark_deleted()}
    suffixes = ("log", "index", "timeindex", "txnindex")
    assert names == {f"{100:020d}.{suffix}.deleted" for suffix in suffixes}
    assert {path.name for path in tmp_path.iterdir()} == names


def test_segments_are_found_by_the_offsets_in_their_range(tmp_path: Path) -> None:
    files = OpenFiles()
    segments = Segments([Segment.create(tmp_path, base, files, now_ms=0) for base in (10, 20, 30)])
    assert [segments.floor_index(offset) for offset in (0, 10, 19, 20, 29, 30, 99)] == [0, 0, 0, 1, 1, 2, 2]
    assert [segments.end_offset_of(index, 44) for index in range(3)] == [20, 30, 44]
    assert [segment.base_offset for segment in segments.since(25)] == [20, 30]
    assert [segment.base_offset for segment in segments.remove_first(1)] == [10]
    assert [segment.base_offset for segment in segments.remove_from(1)] == [30]
    assert (len(segments), segments.active.base_offset) == (1, 20)


def test_records_are_copied_while_too_many_maps_are_in_use(tmp_path: Path, append: Append) -> None:
    files = OpenFiles(1, maps_max=2)
    segments = [Segment.create(tmp_path, number, files, now_ms=1_000) for number in (0, 1, 2)]
    views = []
    for number, segment in enumerate(segments):
        append(segment, number, b"value")
        views.append(segment.view(0, segment.size_bytes, may_copy=False))
    assert [isinstance(view.obj, mmap) for view in views] == [True, True, False]
    assert len({bytes(view[-5:]) for view in views}) == 1
    views.clear()  # the responses were read
    again = segments[0].view(0, segments[0].size_bytes, may_copy=False)
    assert isinstance(again.obj, mmap)
