"""One directory of `log.dirs`: its lock, its identity, its checkpoints, and the names of its subdirectories."""

import fcntl
import json
import os
import re
from pathlib import Path
from random import Random
from threading import Lock
from typing import NamedTuple

from barnabas.base import disk
from barnabas.base.ids import TopicPartition, uuid_to_text
from barnabas.base.topic_names import METADATA_TOPIC
from barnabas.log.checkpoints import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    METADATA_REVISION_FILE,
    RECOVERY_POINT_FILE,
    MalformedFile,
    read_checkpoint,
    read_offsets,
    write_checkpoint,
    write_offsets,
)
from barnabas.log.files import write_atomically
from barnabas.log.partition_log import PartitionLog
from barnabas.log.startup.meta_properties import MetaProperties, read_meta_properties, write_meta_properties

LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"
_NAME_LENGTH_MAX = 255
_PARTITION_DIRECTORY = re.compile(r"([a-zA-Z0-9._-]+)-([0-9]+)")
_FUTURE_DIRECTORY = re.compile(r"([a-zA-Z0-9._-]+)-([0-9]+)\.[^.]+" + FUTURE_SUFFIX)
#: File that marks a directory created by a move, until the directory that it replaces is deleted; Kafka ignores it.
_MOVE_MARK = "replica-move"

_OTHER_DIRECTORY = "choose another directory with --data or log.dirs"

#: Directories locked by this process: a POSIX lock does not keep out the process that holds it.
_locked_here: set[Path] = set()


class LogDirectoryError(Exception):
    """Raised for a log directory that cannot be used; the message is for the operator."""


def parse_partition(name: str) -> TopicPartition | None:
    """Return the partition whose log directory has this name, or None for any other directory."""
    match = _PARTITION_DIRECTORY.fullmatch(name)
    if match is None or match[1] == METADATA_TOPIC or name.endswith((DELETE_SUFFIX, STRAY_SUFFIX)):
        return None
    return TopicPartition(match[1], int(match[2]))


def renamed_directory(topic_partition: TopicPartition, random: Random, suffix: str) -> str:
    """Return `<topic>-<partition>.<32 hex digits><suffix>`, with the topic cut to the length limit of file names."""
    end = f"-{topic_partition.partition}.{random.getrandbits(128):032x}{suffix}"
    return topic_partition.topic[: _NAME_LENGTH_MAX - len(end)] + end


def future_directory(topic_partition: TopicPartition, random: Random) -> str:
    """Return `<topic>-<partition>.<32 hex digits>-future`, uncut because the partition is parsed from the name."""
    return f"{topic_partition}.{random.getrandbits(128):032x}{FUTURE_SUFFIX}"


def fits_future_directory(topic_partition: TopicPartition) -> bool:
    """Whether the name of the partition's future directory is within the length limit of file names."""
    return len(f"{topic_partition}.{'0' * 32}{FUTURE_SUFFIX}") <= _NAME_LENGTH_MAX


def parse_future(name: str) -> TopicPartition | None:
    """Return the partition whose future directory has this name, or None."""
    match = _FUTURE_DIRECTORY.fullmatch(name)
    return None if match is None else TopicPartition(match[1], int(match[2]))


def write_move_mark(directory: Path) -> None:
    """Mark a directory as created by a move; the mark is flushed with the next flush of its log."""
    disk.append_to_file(directory / _MOVE_MARK, b"")


def has_move_mark(directory: Path) -> bool:
    """Whether the directory was created by a move and the directory that it replaces may still exist."""
    return (directory / _MOVE_MARK).exists()


def remove_move_mark(directory: Path) -> None:
    """Remove the mark of a move, so that the directory is an ordinary log directory."""
    disk.remove_file(directory / _MOVE_MARK)


def random_directory_id(random: Random) -> bytes:
    """Return a new random id whose text form does not begin with a dash, as in Kafka."""
    while True:
        directory_id = random.randbytes(16)
        if not uuid_to_text(directory_id).startswith("-"):
            return directory_id


class Volume(NamedTuple):
    """The file system that contains a directory."""

    total_bytes: int
    #: Free space for users other than root.
    usable_bytes: int


class LogDirectory:
    """A locked directory with the logs in it."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.logs: dict[TopicPartition, PartitionLog] = {}
        #: Future replicas: logs that are being moved to this directory.
        self.futures: dict[TopicPartition, PartitionLog] = {}
        #: Why the directory is offline, or None if it is online.
        self.failure: str | None = None
        self.directory_id = b""
        self._lock_fd = -1
        #: Partitions that may have offsets in the checkpoint files, including those of deleted topics.
        self._checkpointed: set[TopicPartition] = set()
        #: Content of checkpoint files, by their name.
        self._written: dict[str, dict[TopicPartition, int]] = {}
        self._written_revision = -1
        self._checkpointing = Lock()

    def lock(self) -> None:
        """Create the directory and lock it against other brokers.

        :raises LogDirectoryError: When it is in use or cannot be written to.
        """
        if self.path in _locked_here:
            raise LogDirectoryError(f"log directory {self.path} is in use by this process already")
        try:
            disk.make_directory(self.path, parents=True, exist_ok=True)
            fd = os.open(self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            message = f"log directory {self.path} cannot be written to: {error.strerror}; {_OTHER_DIRECTORY}"
            raise LogDirectoryError(message) from error
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            message = (
                f"log directory {self.path} is in use by another process, which holds {LOCK_FILE}: stop it, or "
                f"{_OTHER_DIRECTORY}"
            )
            raise LogDirectoryError(message) from error
        self._lock_fd = fd
        _locked_here.add(self.path)

    def unlock(self) -> None:
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1
            _locked_here.discard(self.path)

    def identify(self, cluster_id: str, node_id: int, random: Random) -> None:
        """Check that the directory belongs to this node; assign it to this node if it is new.

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
                message = (
                    f"log directory {self.path} cannot be written to: {error.strerror}; {_OTHER_DIRECTORY}"
                )
                raise LogDirectoryError(message) from error
        self._check_identity(meta, cluster_id, node_id)
        assert meta.directory_id is not None
        self.directory_id = meta.directory_id

    def _check_identity(self, meta: MetaProperties | None, cluster_id: str, node_id: int) -> None:
        if meta is not None and meta.cluster_id != cluster_id:
            message = (
                f"log directory {self.path} belongs to cluster {meta.cluster_id}, not to {cluster_id}: use an empty "
                "directory, or the metadata store of that cluster"
            )
            raise LogDirectoryError(message)
        if meta is not None and meta.node_id != node_id:
            message = (
                f"log directory {self.path} belongs to node {meta.node_id}, not to node {node_id}: set "
                f"node.id={meta.node_id}, or use an empty directory"
            )
            raise LogDirectoryError(message)

    def volume(self) -> Volume:
        """Return the total and the free size of the file system.

        :raises OSError: When the directory does not exist or the disk fails.
        """
        stats = os.statvfs(self.path)
        return Volume(stats.f_blocks * stats.f_frsize, stats.f_bavail * stats.f_frsize)

    @property
    def has_clean_shutdown_marker(self) -> bool:
        """Whether the last shutdown was clean and nothing was appended since."""
        return (self.path / CLEAN_SHUTDOWN_FILE).exists()

    def remove_clean_shutdown_marker(self) -> None:
        """Remove the marker before the first append: after a crash the logs must then be recovered. Blocks."""
        if self.has_clean_shutdown_marker:
            disk.remove_file(self.path / CLEAN_SHUTDOWN_FILE)
            disk.sync_path(self.path)  # so that a power failure does not restore it

    def write_clean_shutdown_marker(self, broker_epoch: int) -> None:
        """Mark the directory as cleanly shut down. Blocks; nothing may be written afterwards."""
        content = json.dumps({"version": 0, "brokerEpoch": broker_epoch})
        write_atomically(self.path / CLEAN_SHUTDOWN_FILE, content.encode())

    def clean_shutdown_epoch(self) -> int | None:
        """Return the broker epoch of the marker; None without a marker, or if it is damaged."""
        try:
            return int(json.loads((self.path / CLEAN_SHUTDOWN_FILE).read_bytes())["brokerEpoch"])
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """Return offsets by partition; none for a damaged file, which costs recovery time but no data."""
        try:
            offsets = read_offsets(self.path / name)
        except MalformedFile:
            return {}
        self._checkpointed.update(offsets)
        return offsets

    def checkpoint(self, metadata_revision: int = -1) -> None:
        """Write all checkpoint files. Blocks; may run in a thread.

        :param metadata_revision: Of the metadata to which the logs belong: an older store is a restored backup; -1 if
            it is not known.
        """
        with self._checkpointing:
            self._write_checkpoints()
            if metadata_revision not in (-1, self._written_revision):
                self.write_metadata_revision(metadata_revision)

    def write_metadata_revision(self, revision: int, *, sync: bool = False) -> None:
        """Replace the revision of the metadata, while no other thread writes checkpoints. Blocks if `sync` is set."""
        write_checkpoint(self.path / METADATA_REVISION_FILE, [(revision,)], sync=sync)
        self._written_revision = revision

    def remove_from_checkpoints(self, tp: TopicPartition) -> None:
        """Remove a deleted partition's offsets from the checkpoints before its name is used again. May block.

        Otherwise, after a crash, the new log would begin at the old one's start offset and lose its records.
        """
        with self._checkpointing:
            if tp in self._checkpointed:
                self._write_checkpoints()

    def _write_checkpoints(self) -> None:
        logs = [
            *self.logs.copy().items(),
            *self.futures.copy().items(),
        ]  # copies: the event loop may add and remove logs
        self._checkpointed.update(tp for tp, _ in logs)
        self._write_offsets(RECOVERY_POINT_FILE, {tp: log.recovery_point for tp, log in logs})
        start_offsets = {
            tp: log.log_start_offset for tp, log in logs if log.log_start_offset > log.first_segment_offset
        }
        self._write_offsets(LOG_START_OFFSET_FILE, start_offsets)
        self._write_offsets(HIGH_WATERMARK_FILE, {tp: log.high_watermark for tp, log in logs})
        cleaner_offsets = {tp: log.cleaner_offset for tp, log in logs if log.cleaner_offset}
        self._write_offsets(CLEANER_OFFSET_FILE, cleaner_offsets)
        self._checkpointed = {tp for tp, _ in logs}

    def _write_offsets(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        """Replace a checkpoint file, unless it contains these offsets already: most partitions are idle."""
        if self._written.get(name) != offsets:
            write_offsets(self.path / name, offsets)
            self._written[name] = offsets

    def read_metadata_revision(self) -> int:
        """Return the revision of the last checkpoint; -1 if the file is missing or damaged."""
        try:
            rows = read_checkpoint(self.path / METADATA_REVISION_FILE, (int,))
        except MalformedFile:
            return -1
        return max((revision for (revision,) in rows), default=-1)

    def partitions_on_disk(self) -> list[tuple[TopicPartition, Path]]:
        """Return the partitions that have a directory here, with its path; includes future replicas."""
        partitions = []
        for entry in os.scandir(self.path):
            name = parse_partition(entry.name) or parse_future(entry.name)
            if name is not None and entry.is_dir():
                partitions.append((name, self.path / entry.name))
        return sorted(partitions)

    def leftovers(self) -> list[Path]:
        """Return the directories whose deletion was interrupted by a crash."""
        return [entry for entry in self.path.glob(f"*{DELETE_SUFFIX}") if entry.is_dir()]
