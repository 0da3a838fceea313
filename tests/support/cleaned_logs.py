"""Find out which logs a broker's cleaner has cleaned."""

from pathlib import Path

from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import CLEANER_OFFSET_FILE
from barnabas.reading.file_logs import checkpointed_offset


def is_cleaned(data_dir: Path, tp: TopicPartition) -> bool:
    """Whether a broker has checkpointed all segments but the active one as cleaned, so that records stay as they
    are.
    """
    return checkpointed_offset(data_dir / CLEANER_OFFSET_FILE, tp) == active_offset(data_dir, tp)


def active_offset(data_dir: Path, tp: TopicPartition) -> int:
    """Return the base offset of the active segment."""
    return max(int(path.name[:20]) for path in (data_dir / str(tp)).glob("*.log"))
