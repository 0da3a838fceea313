"""What log directories tell of where a log begins."""

from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import MalformedFile
from pyspark_barnabas.files import find_directories, log_start_offset
from pyspark_barnabas.segment_files import SegmentFiles
from pyspark_barnabas.values import OptionError

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
