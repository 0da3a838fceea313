"""What log directories tell of where a log begins."""

from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import MalformedFile
from barnabas.log.files import offset_file
from pyspark_barnabas import files
from pyspark_barnabas.files import FileReader, find_directories, log_start_offset
from pyspark_barnabas.losses import DataLossError
from pyspark_barnabas.options import batch_options
from pyspark_barnabas.planning import OffsetRange
from pyspark_barnabas.segment_files import SegmentFiles
from pyspark_barnabas.values import OptionError
from support.segments import write_segment

PLACE = TopicPartition("orders", 0)
CHECKPOINT = "log-start-offset-checkpoint"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / str(PLACE)
    path.mkdir()
    (path / "00000000000000000005.log").touch()
    return path


def start_of(directory: Path) -> int:
    return log_start_offset(directory, PLACE, SegmentFiles(directory, lambda _: None))


def test_a_log_begins_with_its_first_segment_or_where_the_checkpoint_says(directory: Path) -> None:
    assert start_of(directory) == 5
    (directory.parent / CHECKPOINT).write_text("0\n1\norders 0 7\n")
    assert start_of(directory) == 7


def test_a_checkpoint_that_was_made_and_not_written_says_nothing(directory: Path) -> None:
    (directory.parent / CHECKPOINT).touch()
    assert start_of(directory) == 5


def test_a_damaged_checkpoint_is_no_guess(directory: Path) -> None:
    (directory.parent / CHECKPOINT).write_text("nonsense")
    with pytest.raises(MalformedFile, match=CHECKPOINT):
        start_of(directory)


@pytest.fixture
def reader(directory: Path, monkeypatch: pytest.MonkeyPatch) -> FileReader:
    """Of a log whose offsets 5 to 10 were compacted away."""
    monkeypatch.setattr(files, "_PAUSE_S", 0.0)
    (directory / "00000000000000000005.log").unlink()
    write_segment(directory, 0, 3, 2)
    write_segment(directory, 10, 2)
    options = {"subscribe": PLACE.topic, "transport": "files", "logDirs": str(directory.parent)}
    return FileReader(batch_options(options))


def lows(reader: FileReader, low: int, high: int) -> list[int]:
    """Where the batches begin that are read for a range."""
    return [found.low for found in reader.read(OffsetRange(PLACE, low, high), bytes(16))]


def test_a_range_that_ends_in_a_gap_of_compaction_has_lost_nothing(reader: FileReader) -> None:
    assert lows(reader, 0, 7) == [0]
    assert lows(reader, 5, 10) == []
    assert lows(reader, 6, 12) == [6]


def test_a_log_that_ends_before_the_range_or_begins_behind_it_has_lost_records(
    reader: FileReader, directory: Path
) -> None:
    with pytest.raises(DataLossError, match="ends at offset 12 now: offsets up to 13"):
        lows(reader, 6, 13)
    reading = reader.read(OffsetRange(PLACE, 0, 7), bytes(16))
    assert next(reading).low == 0
    offset_file(directory, 0, ".log").unlink()
    with pytest.raises(DataLossError, match="begins at offset 10 now: offsets 5 to 7"):
        next(reading)


def test_partitions_are_found_in_all_log_directories(directory: Path, tmp_path: Path) -> None:
    for name in ("orders-1", "orders-2.0123456789abcdef0123456789abcdef-delete", "lost+found"):
        (tmp_path / "other" / name).mkdir(parents=True)
    other = tmp_path / "other"
    assert find_directories([str(directory.parent), str(other)]) == {
        PLACE: directory,
        TopicPartition("orders", 1): other / "orders-1",
    }
    (other / "orders-0").mkdir()
    with pytest.raises(OptionError, match="orders-0 lies in"):
        find_directories([str(directory.parent), str(other)])
