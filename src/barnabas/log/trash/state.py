"""What checkpoints say of a log, kept in its own directory while it is in the trash."""

import json
from pathlib import Path
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.log.files import write_atomically
from barnabas.log.log_directory import STRAY_SUFFIX
from barnabas.log.partition_log import PartitionLog

STATE_FILE = "trash.json"
_NAME_LENGTH_MAX = 255


class TrashState(NamedTuple):
    """Offsets that a log's files do not tell."""

    log_start_offset: int = 0
    recovery_point: int = 0
    cleaner_offset: int = 0


def trash_directory(topic_partition: TopicPartition, topic_id: bytes) -> str:
    """`<topic>-<partition>.<topic id>-stray`, the topic cut so that a file system takes it."""
    end = f"-{topic_partition.partition}.{topic_id.hex()}{STRAY_SUFFIX}"
    return topic_partition.topic[: _NAME_LENGTH_MAX - len(end)] + end


def state_of(log: PartitionLog) -> TrashState:
    """What is to be kept of a log."""
    begins_within = log.log_start_offset > log.first_segment_offset
    return TrashState(log.log_start_offset if begins_within else 0, log.recovery_point, log.cleaner_offset)


def keep_state(log: PartitionLog) -> None:
    """Write what is to be kept of a log, if that is anything. Its start survives a power cut. Blocks.

    :raises OSError: When the disk fails.
    """
    state = state_of(log)
    if state != TrashState():
        write_state(log.directory, state, sync=state.log_start_offset > 0)


def write_state(directory: Path, state: TrashState, *, sync: bool = False) -> None:
    """Write a log's state into its directory. Blocks.

    :raises OSError: When the disk fails.
    """
    write_atomically(directory / STATE_FILE, json.dumps(state._asdict()).encode(), sync=sync)


def read_state(directory: Path) -> TrashState | None:
    """What was kept; None for a log that does not come from the trash. A damaged file costs time, not records."""
    try:
        text = (directory / STATE_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        return TrashState(**json.loads(text))
    except (ValueError, TypeError):
        return TrashState()


def remove_state(directory: Path) -> None:
    """Go by the checkpoints from now on. Blocks."""
    (directory / STATE_FILE).unlink(missing_ok=True)
