"""Log start offsets from log directories."""

from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import MalformedFile, write_partition_metadata
from barnabas.log.files import offset_file
from barnabas.reading.data_loss import DataLossError
from barnabas.reading.file_logs import find_directories, log_start_offset
from barnabas.reading.file_reader import FileReader
from barnabas.reading.offset_range import OffsetRange
from barnabas.reading.option_values import OptionError
from barnabas.reading.segment_files import SegmentFiles
from pyspark_barnabas.source.options import batch_options
from support.segments import write_segment

TP = TopicPartition("orders", 0)
FIRST_ID = bytes(15) + b"\1"
CHECKPOINT = "log-start-offset-checkpoint"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / str(TP)
    path.mkdir()
    (path / "00000000000000000005.log").touch()
    return path


def start_of(directory: Path) -> int:
    return log_start_offset(directory, TP, SegmentFiles(directory, lambda _: None))


def test_a_log_starts_at_its_first_segment_or_at_the_checkpoint(directory: Path) -> None:
    assert start_of(directory) == 5
    (directory.parent / CHECKPOINT).write_text("0\n1\norders 0 7\n")
    assert start_of(directory) == 7


def test_an_empty_checkpoint_is_ignored(directory: Path) -> None:
    (directory.parent / CHECKPOINT).touch()
    assert start_of(directory) == 5


def test_a_damaged_checkpoint_is_an_error(directory: Path) -> None:
    (directory.parent / CHECKPOINT).write_text("nonsense")
    with pytest.raises(MalformedFile, match=CHECKPOINT):
        start_of(directory)


@pytest.fixture
def reader(directory: Path) -> FileReader:
    """Read a log whose offsets 5 to 10 were compacted away."""
    (directory / "00000000000000000005.log").unlink()
    write_segment(directory, 0, 3, 2)
    write_segment(directory, 10, 2)
    return FileReader(batch_options(options_of(directory)), lambda _: None)


@pytest.fixture
def lenient(reader: FileReader, directory: Path) -> FileReader:
    """Read the same log with failOnDataLoss=false."""
    return FileReader(batch_options({**options_of(directory), "failOnDataLoss": "false"}), lambda _: None)


def options_of(directory: Path) -> dict[str, str]:
    return {"subscribe": TP.topic, "transport": "files", "logDirs": str(directory.parent)}


def lows(reader: FileReader, low: int, high: int) -> list[int]:
    """Return the base offsets of the batches that are read for a range."""
    return [found.low for found in reader.read(OffsetRange(TP, low, high), bytes(16))]


def test_a_range_that_ends_in_a_compaction_gap_has_no_data_loss(reader: FileReader) -> None:
    assert lows(reader, 0, 7) == [0]
    assert lows(reader, 5, 10) == []
    assert lows(reader, 6, 12) == [6]


def test_a_log_that_ends_before_the_range_or_starts_after_it_has_data_loss(
    reader: FileReader, directory: Path
) -> None:
    with pytest.raises(DataLossError, match="ends at offset 12 now: offsets up to 13"):
        lows(reader, 6, 13)
    reading = reader.read(OffsetRange(TP, 0, 7), bytes(16))
    assert next(reading).low == 0
    offset_file(directory, 0, ".log").unlink()
    with pytest.raises(DataLossError, match="begins at offset 10 now: offsets 5 to 7"):
        next(reading)


def test_segments_deleted_by_retention_within_a_range_are_data_loss(
    reader: FileReader, directory: Path, lenient: FileReader
) -> None:
    write_segment(directory, 12, 3)
    strict_reading, lenient_reading = (
        each.read(OffsetRange(TP, 0, 15), bytes(16)) for each in (reader, lenient)
    )
    assert [next(strict_reading).low, next(lenient_reading).low] == [0, 0]
    for base_offset in (0, 10):
        offset_file(directory, base_offset, ".log").unlink()
    with pytest.raises(DataLossError, match="begins at offset 12 now: offsets 5 to 12 are gone"):
        next(strict_reading)
    assert [found.low for found in lenient_reading] == [5]


def test_a_topic_deleted_while_it_is_read_is_data_loss(
    reader: FileReader, directory: Path, lenient: FileReader
) -> None:
    strict_reading, lenient_reading = (
        each.read(OffsetRange(TP, 0, 12), bytes(16)) for each in (reader, lenient)
    )
    assert [next(strict_reading).low, next(lenient_reading).low] == [0, 0]
    directory.rename(directory.with_name(f"{TP}.0123456789abcdef0123456789abcdef-delete"))
    with pytest.raises(DataLossError, match="topic 'orders' is not in the log directories"):
        next(strict_reading)
    assert list(lenient_reading) == []


def test_a_topic_recreated_meanwhile_is_a_different_topic(reader: FileReader, directory: Path) -> None:
    write_partition_metadata(directory, FIRST_ID)
    reading = reader.read(OffsetRange(TP, 0, 12), FIRST_ID)
    assert next(reading).low == 0
    write_partition_metadata(directory, bytes(15) + b"\2")
    with pytest.raises(DataLossError, match="topic 'orders' is not in the log directories"):
        next(reading)


def test_partitions_are_found_in_all_log_directories(directory: Path, tmp_path: Path) -> None:
    for name in ("orders-1", "orders-2.0123456789abcdef0123456789abcdef-delete", "lost+found"):
        (tmp_path / "other" / name).mkdir(parents=True)
    other = tmp_path / "other"
    assert find_directories([str(directory.parent), str(other)]) == {
        TP: directory,
        TopicPartition("orders", 1): other / "orders-1",
    }
    (other / "orders-0").mkdir()
    with pytest.raises(OptionError, match="orders-0 is in"):
        find_directories([str(directory.parent), str(other)])
