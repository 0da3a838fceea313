"""One entry of `log.dirs`: its lock, its identity, the names of the directories in it."""

import fcntl
import os
import re
from pathlib import Path
from random import Random
from threading import Lock
from typing import NamedTuple

from barnabas.base.ids import TopicPartition, uuid_to_text
from barnabas.log.files import sync_path, write_atomically
from barnabas.log.partition_log import PartitionLog
from barnabas.log.startup.checkpoints import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    MalformedFile,
    read_offsets,
    write_offsets,
)
from barnabas.log.startup.meta_properties import MetaProperties, read_meta_properties, write_meta_properties

LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"
_NAME_LENGTH_MAX = 255
_PARTITION_DIRECTORY = re.compile(r"([a-zA-Z0-9._-]+)-([0-9]+)")
_FUTURE_DIRECTORY = re.compile(r"([a-zA-Z0-9._-]+)-([0-9]+)\.[^.]+" + FUTURE_SUFFIX)
#: In a directory that a move made, until what it replaces is given up; Kafka passes over it.
_MOVE_MARK = "replica-move"
#: Apache Kafka's own metadata log; it is not a topic's.
_METADATA_TOPIC = "__cluster_metadata"

#: A POSIX lock does not keep out its own process, so this does.
_locked_here: set[Path] = set()


class LogDirectoryError(Exception):
    """A log directory that cannot be used; the message is for whoever configured it."""


def parse_partition(name: str) -> TopicPartition | None:
    """The partition whose directory has this name, or None for a directory of anything else."""
    match = _PARTITION_DIRECTORY.fullmatch(name)
    if match is None or match[1] == _METADATA_TOPIC or name.endswith((DELETE_SUFFIX, STRAY_SUFFIX)):
        return None
    return TopicPartition(match[1], int(match[2]))


def renamed_directory(topic_partition: TopicPartition, random: Random, suffix: str) -> str:
    """`<topic>-<partition>.<32 hex digits><suffix>`, the topic cut so that a file system takes it."""
    end = f"-{topic_partition.partition}.{random.getrandbits(128):032x}{suffix}"
    return topic_partition.topic[: _NAME_LENGTH_MAX - len(end)] + end


def future_directory(topic_partition: TopicPartition, random: Random) -> str:
    """`<topic>-<partition>.<32 hex digits>-future`, whole: the name must tell the partition again."""
    return f"{topic_partition}.{random.getrandbits(128):032x}{FUTURE_SUFFIX}"


def fits_future_directory(topic_partition: TopicPartition) -> bool:
    """Whether a file system takes the name of the partition's future directory."""
    return len(f"{topic_partition}.{'0' * 32}{FUTURE_SUFFIX}") <= _NAME_LENGTH_MAX


def parse_future(name: str) -> TopicPartition | None:
    """The partition whose future directory has this name, or None."""
    match = _FUTURE_DIRECTORY.fullmatch(name)
    return None if match is None else TopicPartition(match[1], int(match[2]))


def write_move_mark(directory: Path) -> None:
    """Say that a move made the directory; on the disk with the next flush of its log."""
    (directory / _MOVE_MARK).touch()


def has_move_mark(directory: Path) -> bool:
    """Whether a move made the directory, and may not have given up what it replaces."""
    return (directory / _MOVE_MARK).exists()


def remove_move_mark(directory: Path) -> None:
    """Say that the directory is a log like any other."""
    (directory / _MOVE_MARK).unlink(missing_ok=True)


def random_directory_id(random: Random) -> bytes:
    """A new id, whose printed form does not begin with a dash, as Kafka's never do."""
    while True:
        directory_id = random.randbytes(16)
        if not uuid_to_text(directory_id).startswith("-"):
            return directory_id


class Volume(NamedTuple):
    """The file system that a directory lies on."""

    total_bytes: int
    #: What is left for who is not root.
    usable_bytes: int


class LogDirectory:
    """A locked directory with the logs in it."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.logs: dict[TopicPartition, PartitionLog] = {}
        #: Replicas that are being moved here from another directory.
        self.futures: dict[TopicPartition, PartitionLog] = {}
        #: Why the directory is offline, or None.
        self.failure: str | None = None
        self.directory_id = b""
        self._lock_fd = -1
        #: Partitions of which the checkpoint files may have offsets, those of deleted topics included.
        self._checkpointed: set[TopicPartition] = set()
        self._checkpointing = Lock()

    def lock(self) -> None:
        """Create the directory and keep every other broker out.

        :raises LogDirectoryError: When it is in use or cannot be written to.
        """
        if self.path in _locked_here:
            raise LogDirectoryError(f"log directory {self.path} is in use by this process already")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            message = f"log directory {self.path} cannot be written to: {error.strerror}"
            raise LogDirectoryError(message) from error
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            message = f"log directory {self.path} is in use by another process, which holds {LOCK_FILE}"
            raise LogDirectoryError(message) from error
        self._lock_fd = fd
        _locked_here.add(self.path)

    def unlock(self) -> None:
        """Let other brokers in."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1
            _locked_here.discard(self.path)

    def identify(self, cluster_id: str, node_id: int, random: Random) -> None:
        """Check whose directory it is, or make it this node's.

        :raises LogDirectoryError: When it belongs to another cluster or node, or cannot be written to.
        """
        try:
            meta = read_meta_properties(self.path)
        except MalformedFile as error:
            raise LogDirectoryError(str(error)) from error
        if meta is None or meta.directory_id is None:
            self._check_identity(meta, cluster_id, node_id)
            meta = MetaProperties(cluster_id, node_id, random_directory_id(random))
            try:
                write_meta_properties(self.path, meta)
            except OSError as error:
                message = f"log directory {self.path} cannot be written to: {error.strerror}"
                raise LogDirectoryError(message) from error
        self._check_identity(meta, cluster_id, node_id)
        assert meta.directory_id is not None
        self.directory_id = meta.directory_id

    def _check_identity(self, meta: MetaProperties | None, cluster_id: str, node_id: int) -> None:
        if meta is not None and meta.cluster_id != cluster_id:
            message = f"log directory {self.path} belongs to cluster {meta.cluster_id}, not to {cluster_id}"
            raise LogDirectoryError(message)
        if meta is not None and meta.node_id != node_id:
            message = f"log directory {self.path} belongs to node {meta.node_id}, not to node {node_id}"
            raise LogDirectoryError(message)

    def volume(self) -> Volume:
        """How large the volume is, and how much of it is free.

        :raises OSError: When the directory is gone or the disk fails.
        """
        found = os.statvfs(self.path)
        return Volume(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    @property
    def has_clean_shutdown_marker(self) -> bool:
        """Whether the last stop was clean, and nothing was appended since."""
        return (self.path / CLEAN_SHUTDOWN_FILE).exists()

    def remove_clean_shutdown_marker(self) -> None:
        """Say that a crash from now on is none that the files can be trusted after. Blocks."""
        if self.has_clean_shutdown_marker:
            (self.path / CLEAN_SHUTDOWN_FILE).unlink()
            sync_path(self.path)  # a power cut must not bring it back

    def write_clean_shutdown_marker(self) -> None:
        """Say that every file can be trusted. Blocks; nothing may be written afterwards."""
        write_atomically(self.path / CLEAN_SHUTDOWN_FILE, b'{"version":0,"brokerEpoch":-1}')

    def read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """Offsets by partition; a damaged file counts as none, which costs time but no data."""
        try:
            offsets = read_offsets(self.path / name)
        except MalformedFile:
            return {}
        self._checkpointed.update(offsets)
        return offsets

    def checkpoint(self) -> None:
        """Write all offsets that a start goes by. Blocks; may run in a thread."""
        with self._checkpointing:
            self._write_checkpoints()

    def forget_checkpoints(self, name: TopicPartition) -> None:
        """Take a deleted partition's offsets out of the files before a new one gets its name. May block.

        After a crash the new log would else begin at the start of the old one, and so lose its records.
        """
        with self._checkpointing:
            if name in self._checkpointed:
                self._write_checkpoints()

    def _write_checkpoints(self) -> None:
        logs = [*self.logs.copy().items(), *self.futures.copy().items()]  # the loop may add and remove some
        self._checkpointed.update(name for name, _ in logs)
        write_offsets(self.path / RECOVERY_POINT_FILE, {name: log.recovery_point for name, log in logs})
        starts = {
            name: log.log_start_offset
            for name, log in logs
            if log.log_start_offset > log.first_segment_offset
        }
        write_offsets(self.path / LOG_START_OFFSET_FILE, starts)
        write_offsets(self.path / HIGH_WATERMARK_FILE, {name: log.high_watermark for name, log in logs})
        cleaned = {name: log.cleaner_offset for name, log in logs if log.cleaner_offset}
        write_offsets(self.path / CLEANER_OFFSET_FILE, cleaned)
        self._checkpointed = {name for name, _ in logs}

    def partitions_on_disk(self) -> list[tuple[TopicPartition, Path]]:
        """The partitions that have a directory here, and which one; of futures, too."""
        found = []
        for entry in os.scandir(self.path):
            name = parse_partition(entry.name) or parse_future(entry.name)
            if name is not None and entry.is_dir():
                found.append((name, self.path / entry.name))
        return sorted(found)

    def leftovers(self) -> list[Path]:
        """Directories whose deletion a crash interrupted."""
        return [entry for entry in self.path.glob(f"*{DELETE_SUFFIX}") if entry.is_dir()]
