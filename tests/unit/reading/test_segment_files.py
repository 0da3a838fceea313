"""Segments of a directory, while other processes write, replace and delete them."""

from collections.abc import Callable
from pathlib import Path

from barnabas.log.files import offset_file
from barnabas.log.segments.offset_index import OffsetIndex
from barnabas.log.segments.transaction_index import AbortedTransaction, TransactionIndex
from barnabas.reading.segment_files import Chunk, SegmentFiles
from barnabas.wire.records.batch import assign, read_header
from barnabas.wire.records.record import decode_batch
from support.batches import batch
from support.segments import write_segment


def never(_: float) -> None:
    raise AssertionError("there is nothing to wait for")


def files(directory: Path, pause: Callable[[float], object] = never) -> SegmentFiles:
    return SegmentFiles(directory, pause)


def offsets(chunk: Chunk) -> list[int]:
    position, found = 0, []
    for header in chunk.headers:
        found += [record.offset for record in decode_batch(chunk.buffer, position, header)]
        position += header.size_bytes
    return found


def read(segments: SegmentFiles, low: int, high: int) -> list[int]:
    return [offset for chunk in segments.chunks(low, high) for offset in offsets(chunk)]


def test_batches_are_in_order_across_segments(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, 3, 2)
    write_segment(tmp_path, 5, 4)
    write_segment(tmp_path, 9, 1)
    assert read(files(tmp_path), 0, 10) == list(range(10))


def test_only_batches_of_the_range_are_returned(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, 3, 3, 3)
    assert read(files(tmp_path), 4, 6) == [3, 4, 5]
    assert read(files(tmp_path), 2, 4) == [0, 1, 2, 3, 4, 5]
    assert read(files(tmp_path), 9, 9) == []


def test_reading_starts_at_the_index_entry_unless_it_is_wrong(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, *[1] * 50)
    size_bytes = read_header(offset_file(tmp_path, 0, ".log").read_bytes()).size_bytes
    for position in (30 * size_bytes, 30 * size_bytes + 7, 1 << 20):
        index = OffsetIndex(offset_file(tmp_path, 0, ".index"), 0)
        index.clear()
        index.append(30, position)
        index.save()
        assert read(files(tmp_path), 35, 50) == list(range(35, 50))


def test_bytes_being_written_after_the_end_are_ignored(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, 3, tail=b"\0" * 500)
    assert read(files(tmp_path), 0, 3) == [0, 1, 2]
    write_segment(tmp_path, 0, 3, tail=bytes(batch(b"half"))[:30])
    assert read(files(tmp_path), 0, 9) == [0, 1, 2]


def test_a_batch_larger_than_a_read_is_read(tmp_path: Path) -> None:
    large = bytearray(batch(b"x" * (20 << 20)))
    offset_file(tmp_path, 0, ".log").write_bytes(large)
    assert read(files(tmp_path), 0, 1) == [0]


def test_compaction_gaps_are_skipped(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, 2)
    write_segment(tmp_path, 10, 2)
    assert read(files(tmp_path), 0, 12) == [0, 1, 10, 11]
    assert read(files(tmp_path), 5, 11) == [10, 11]


def test_a_log_continues_after_a_gap_but_not_after_its_end(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, 2)
    write_segment(tmp_path, 10, 2, 2)
    segments = files(tmp_path)
    assert [segments.continues_at(offset) for offset in (5, 10, 13, 14)] == [True, True, True, False]
    write_segment(tmp_path, 20)
    assert [segments.continues_at(offset) for offset in (14, 20, 21)] == [True, True, False]


def test_segments_merged_meanwhile_are_read(tmp_path: Path) -> None:
    for base_offset in (0, 10, 20):
        write_segment(tmp_path, base_offset, 10)
    chunks = files(tmp_path).chunks(0, 30)
    found = offsets(next(chunks)) + offsets(next(chunks))
    for base_offset in (0, 10, 20):
        offset_file(tmp_path, base_offset, ".log").unlink()
    write_segment(tmp_path, 0, 15, 15)
    rest = [offset for chunk in chunks for offset in offsets(chunk)]
    assert found == list(range(20))
    assert rest == list(range(15, 30)), "the whole batch in which reading goes on"


def test_replacements_are_awaited(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, 5)
    write_segment(tmp_path, 5, 5, suffix=".swap")

    def complete_swap(_: float) -> None:
        swapped = offset_file(tmp_path, 5, ".log.swap")
        if swapped.exists():
            swapped.rename(offset_file(tmp_path, 5, ".log"))

    assert read(files(tmp_path, complete_swap), 0, 10) == list(range(10))


def test_other_files_are_not_segments(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, 5)
    for name in (
        "00000000000000000005.log.deleted",
        "00000000000000000007.log.cleaned",
        "leader-epoch-checkpoint",
    ):
        (tmp_path / name).touch()
    assert files(tmp_path).base_offsets() == [0]


def test_aborted_transactions_come_from_the_segments_own_and_later_indexes(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, 10)
    write_segment(tmp_path, 10, 10)
    TransactionIndex(offset_file(tmp_path, 0, ".txnindex")).append(AbortedTransaction(1, 2, 4, 5))
    TransactionIndex(offset_file(tmp_path, 10, ".txnindex")).append(AbortedTransaction(2, 8, 12, 13))
    in_doubt = [read_header(one) for one in (transactional(1, 3), transactional(2, 9), transactional(2, 14))]
    assert [files(tmp_path).aborted(0, 20).admits(header) for header in in_doubt] == [False, False, True]
    assert [files(tmp_path).aborted(0, 8).admits(header) for header in in_doubt] == [False, True, True]


def transactional(producer_id: int, base_offset: int) -> bytearray:
    one = bytearray(
        batch(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)
    )
    assign(one, base_offset, read_header(one).batch_length, 0)
    return one
