"""Logs that a broker's cleaner has been at."""

from pathlib import Path

from barnabas.base.ids import TopicPartition
from barnabas.log.startup.checkpoints import CLEANER_OFFSET_FILE
from pyspark_barnabas.source.file_offset_reader import checkpointed_offset


def is_cleaned(data_dir: Path, tp: TopicPartition) -> bool:
    """Whether a broker says that it has cleaned all but the segment that is written to: rows stay as they are."""
    return checkpointed_offset(data_dir / CLEANER_OFFSET_FILE, tp) == active_offset(data_dir, tp)


def active_offset(data_dir: Path, tp: TopicPartition) -> int:
    """Where the segment begins that is written to."""
    return max(int(path.name[:20]) for path in (data_dir / str(tp)).glob("*.log"))
