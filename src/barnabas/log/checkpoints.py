"""Kafka's small text files: checkpoints (version, count, lines) and `partition.metadata`."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from barnabas.base.ids import TopicPartition, uuid_from_text, uuid_to_text
from barnabas.log.files import write_atomically

RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_FILE = "log-start-offset-checkpoint"
HIGH_WATERMARK_FILE = "replication-offset-checkpoint"
#: Not a file of Kafka.
METADATA_REVISION_FILE = "metadata-revision-checkpoint"
CLEANER_OFFSET_FILE = "cleaner-offset-checkpoint"
PARTITION_METADATA_FILE = "partition.metadata"
_VERSION = "0"


class MalformedFile(Exception):
    """Raised for a file with unexpected content; the message names the file and the line."""


def write_checkpoint(path: Path, rows: Iterable[tuple[object, ...]], *, sync: bool = True) -> None:
    """Replace a checkpoint file. Blocks if `sync` is set."""
    lines = [" ".join(map(str, row)) for row in rows]
    text = "\n".join([_VERSION, str(len(lines)), *lines, ""])
    write_atomically(path, text.encode(), sync=sync)


def read_checkpoint(path: Path, columns: tuple[Callable[[str], Any], ...]) -> list[tuple[Any, ...]]:
    """Return the rows of a checkpoint file; none if the file does not exist.

    :raises MalformedFile: When version, count or a row is not valid.
    """
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as error:
        raise MalformedFile(f"{path}: not a text file") from error
    if not lines or lines[0] != _VERSION:
        raise MalformedFile(f"{path}: line 1 must be the version {_VERSION}")
    rows = [_read_row(path, number, line, columns) for number, line in enumerate(lines[2:], 3)]
    if len(lines) < 2 or lines[1] != str(len(rows)):
        raise MalformedFile(f"{path}: line 2 must be the number of rows, {len(rows)}")
    return rows


def _read_row(
    path: Path, number: int, line: str, columns: tuple[Callable[[str], Any], ...]
) -> tuple[Any, ...]:
    words = line.split()
    try:
        return tuple(column(word) for column, word in zip(columns, words, strict=True))
    except ValueError as error:
        raise MalformedFile(f"{path}: line {number} must have {len(columns)} fields, not '{line}'") from error


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """Return offsets by partition.

    :raises MalformedFile: When the file is damaged.
    """
    rows = read_checkpoint(path, (str, int, int))
    return {TopicPartition(topic, partition): offset for topic, partition, offset in rows}


def write_offsets(path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace a file of offsets by partition. Blocks."""
    write_checkpoint(path, [(name.topic, name.partition, offset) for name, offset in sorted(offsets.items())])


def write_partition_metadata(directory: Path, topic_id: bytes) -> None:
    """Write the topic id to a partition's directory; not flushed to the disk."""
    text = f"version: 0\ntopic_id: {uuid_to_text(topic_id)}"
    write_atomically(directory / PARTITION_METADATA_FILE, text.encode(), sync=False)


def read_partition_metadata(directory: Path) -> bytes | None:
    """Return the topic id in a partition's directory, or None if it has none.

    After a power failure the file may be empty, if nothing of the log was flushed before.

    :raises MalformedFile: When the file is damaged.
    """
    path = directory / PARTITION_METADATA_FILE
    try:
        text = path.read_text()
        if not text.strip("\0"):
            return None
        fields = dict(line.split(": ", 1) for line in text.splitlines())
        return uuid_from_text(fields["topic_id"]) if fields["version"] == "0" else None
    except FileNotFoundError:
        return None
    except (ValueError, KeyError) as error:
        raise MalformedFile(f"{path}: expected 'version: 0' and 'topic_id: <22 characters>'") from error
