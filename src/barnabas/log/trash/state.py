"""The checkpointed offsets of a log in the trash, stored in its own directory."""

import json
from pathlib import Path
from random import Random
from typing import NamedTuple

from barnabas.base import disk
from barnabas.base.ids import TopicPartition
from barnabas.log.files import write_atomically
from barnabas.log.log_directory import STRAY_SUFFIX, renamed_directory
from barnabas.log.partition_log import PartitionLog

STATE_FILE = "trash.json"
_NAME_LENGTH_MAX = 255


class TrashState(NamedTuple):
    """Offsets of a log that its segment files do not contain."""

    log_start_offset: int = 0
    recovery_point: int = 0
    cleaner_offset: int = 0


def trash_directory(topic_partition: TopicPartition, topic_id: bytes) -> str:
    """Return `<topic>-<partition>.<topic id>-stray`, with the topic cut to the length limit of file names."""
    end = f"-{topic_partition.partition}.{topic_id.hex()}{STRAY_SUFFIX}"
    return topic_partition.topic[: _NAME_LENGTH_MAX - len(end)] + end


def rename_to_trash(path: Path, tp: TopicPartition, topic_id: bytes, random: Random) -> None:
    """Give a log's directory its name in the trash.

    If an undeletion has failed, an earlier log of the same replica may still have that name: it is set aside as a
    stray.

    :raises OSError: When the disk fails.
    """
    target = path.with_name(trash_directory(tp, topic_id))
    if target.exists():
        disk.rename(target, path.with_name(renamed_directory(tp, random, STRAY_SUFFIX)))
    disk.rename(path, target)


def state_of(log: PartitionLog) -> TrashState:
    """Return the offsets of a log to store in the trash."""
    starts_within_segment = log.log_start_offset > log.first_segment_offset
    return TrashState(
        log.log_start_offset if starts_within_segment else 0, log.recovery_point, log.cleaner_offset
    )


def save_state(log: PartitionLog) -> None:
    """Write the state of a log, unless it is empty; the log start offset survives a power failure. Blocks.

    :raises OSError: When the disk fails.
    """
    state = state_of(log)
    if state != TrashState():
        write_state(log.directory, state, sync=state.log_start_offset > 0)


def write_state(directory: Path, state: TrashState, *, sync: bool = False) -> None:
    """Write a log's state to its directory. Blocks.

    :raises OSError: When the disk fails.
    """
    write_atomically(directory / STATE_FILE, json.dumps(state._asdict()).encode(), sync=sync)


def read_state(directory: Path) -> TrashState | None:
    """Return the stored state; None for a log that is not from the trash.

    An empty state replaces a damaged file: recovery then takes longer, but no records are lost.
    """
    try:
        text = (directory / STATE_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        return TrashState(**json.loads(text))
    except (ValueError, TypeError):
        return TrashState()


def remove_state(directory: Path) -> None:
    """Remove the stored state, because the checkpoints contain it from now on. Blocks."""
    disk.remove_file(directory / STATE_FILE)
