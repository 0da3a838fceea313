"""Logs that Apache Kafka's cleaner has been at."""

from pathlib import Path

from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import CLEANER_OFFSET_FILE
from pyspark_barnabas.files import checkpointed_offset


def is_cleaned(data_dir: Path, place: TopicPartition) -> bool:
    """Whether Kafka says that it has cleaned all but the segment that cleaners leave alone: rows stay as they are."""
    active = max(int(path.name[:20]) for path in (data_dir / str(place)).glob("*.log"))
    return checkpointed_offset(data_dir / CLEANER_OFFSET_FILE, place) == active
