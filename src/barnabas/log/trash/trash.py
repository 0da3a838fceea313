"""The trash: logs of deleted topics that can be restored, in directories named after their topic ids.

The directory is `<topic>-<partition>.<topic id>-stray`: Apache Kafka ignores it, and only code that knows the topic id
deletes it. The log's checkpointed offsets are stored in it, next to the segments.
"""

import contextlib
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from barnabas.base import disk
from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import (
    CLEANER_OFFSET_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    MalformedFile,
    read_partition_metadata,
    write_partition_metadata,
)
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directory import (
    DELETE_SUFFIX,
    STRAY_SUFFIX,
    LogDirectory,
    remove_move_mark,
    renamed_directory,
)
from barnabas.log.log_manager import LogManager
from barnabas.log.open_log import open_log
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.trash.state import TrashState, read_state, remove_state, rename_to_trash, write_state
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import KafkaError

_TRASHED = re.compile(r"(.+)-([0-9]+)\.([0-9a-f]{32})-stray")

#: Checkpoint files with the offsets of a `TrashState`, in its order.
_STATE_FILES = (LOG_START_OFFSET_FILE, RECOVERY_POINT_FILE, CLEANER_OFFSET_FILE)

#: Open segments of a log that a thread is restoring.
_OPEN_SEGMENTS_MAX = 4

_log = get_logger("barnabas.log")


class TrashedLog(NamedTuple):
    """One log in the trash."""

    topic_id: bytes
    partition: int
    path: Path


def trashed_logs(directory: LogDirectory) -> Iterator[TrashedLog]:
    """Yield all logs in the trash of a directory. Blocks.

    :raises OSError: When the disk fails.
    """
    for path in directory.path.glob("*-stray"):
        match = _TRASHED.fullmatch(path.name)
        if match is not None:
            yield TrashedLog(bytes.fromhex(match[3]), int(match[2]), path)


def reconcile_trash(log_manager: LogManager, names: Mapping[bytes, str], purged: Collection[bytes]) -> None:
    """Complete deletions and restores that a crash or a failed disk interrupted, before logs are loaded. Blocks.

    A disk that fails goes offline.

    :param names: Existing topics by id: their logs get back the names of their partitions.
    :param purged: Ids of purged topics: their logs are removed while logs are loaded.
    """
    _trash_misnamed(log_manager, names)
    for directory in log_manager.directories:
        with log_manager.offline_on_error(directory):
            for trashed in list(trashed_logs(directory)):
                if trashed.topic_id in purged:
                    _mark_for_deletion(directory, trashed, log_manager.random)
                elif trashed.topic_id in names:
                    tp = TopicPartition(names[trashed.topic_id], trashed.partition)
                    if not (directory.path / str(tp)).exists():
                        write_state(trashed.path, read_state(trashed.path) or TrashState())
                        _complete_topic_id(trashed)
                        disk.rename(trashed.path, directory.path / str(tp))


def _complete_topic_id(trashed: TrashedLog) -> None:
    """Write the topic id of a log that a power failure has taken, or the log would be a stray."""
    with contextlib.suppress(MalformedFile):  # opening the log reports the error
        if read_partition_metadata(trashed.path) is None:
            write_partition_metadata(trashed.path, trashed.topic_id)


def _trash_misnamed(log_manager: LogManager, names: Mapping[bytes, str]) -> None:
    """Move logs to the trash whose directory has the name of another topic: their own was renamed or deleted.

    That happens if a topic is deleted or renamed while the disk is offline. Reads topic ids only where needed.
    """
    ids = {name: topic_id for topic_id, name in names.items()}
    partitions_by_directory: dict[LogDirectory, list[tuple[TopicPartition, Path]]] = {}
    logs_count: Counter[TopicPartition] = Counter()
    for directory in log_manager.directories:
        with log_manager.offline_on_error(directory):
            partitions_by_directory[directory] = directory.partitions_on_disk()
            logs_count.update(name for name, _ in partitions_by_directory[directory])
            logs_count.update(
                TopicPartition(names[trashed.topic_id], trashed.partition)
                for trashed in trashed_logs(directory)
                if trashed.topic_id in names
            )
    for directory, partitions in partitions_by_directory.items():
        with log_manager.offline_on_error(directory):
            for name, path in partitions:
                if path.name == str(name) and (name.topic not in ids or logs_count[name] > 1):
                    _move_to_trash(directory, name, path, names, log_manager.random)


def _move_to_trash(
    directory: LogDirectory, tp: TopicPartition, path: Path, names: Mapping[bytes, str], random: Random
) -> None:
    try:
        topic_id = read_partition_metadata(path)
    except MalformedFile:
        return  # opening the log reports the error
    if topic_id is None or names.get(topic_id) == tp.topic:
        return
    if topic_id not in names and tp.topic not in names.values():
        return  # no other log needs the name
    offsets = (directory.read_checkpoint(file).get(tp, 0) for file in _STATE_FILES)
    write_state(path, TrashState(*offsets), sync=True)
    rename_to_trash(path, tp, topic_id, random)


def _mark_for_deletion(directory: LogDirectory, trashed: TrashedLog, random: Random) -> Path:
    tp = TopicPartition("trash", trashed.partition)
    return disk.rename(trashed.path, directory.path / renamed_directory(tp, random, DELETE_SUFFIX))


class TrashedLogs:
    """The trash of a node's log directories. Call blocking methods in threads, one at a time."""

    def __init__(self, log_manager: LogManager) -> None:
        self._log_manager = log_manager

    def _trashed(self) -> Iterator[tuple[LogDirectory, TrashedLog]]:
        """Yield the logs in the trash of all online directories; a directory that fails goes offline."""
        for directory in self._log_manager.directories:
            if directory.failure is None:
                logs: list[TrashedLog] = []
                with self._log_manager.offline_on_error(directory):
                    logs = list(trashed_logs(directory))
                yield from ((directory, trashed) for trashed in logs)

    def of_topic(self, topic_id: bytes) -> dict[int, tuple[LogDirectory, TrashedLog]]:
        """Return a topic's logs in the trash, by partition. Blocks."""
        return {
            trashed.partition: (directory, trashed)
            for directory, trashed in self._trashed()
            if trashed.topic_id == topic_id
        }

    def reopen(
        self, directory: LogDirectory, trashed: TrashedLog, tp: TopicPartition, config: LogConfig
    ) -> PartitionLog | None:
        """Rename a log from the trash to its partition and recover it; None if that fails. Blocks.

        If the disk fails, the directory goes offline, and the next start completes the restoration. A log that cannot
        be read is set aside as a stray.
        """
        path = directory.path / str(tp)
        try:
            state = read_state(trashed.path) or TrashState()
            directory.remove_from_checkpoints(tp)
            remove_move_mark(trashed.path)
            write_state(trashed.path, state)  # a restart then knows that the log is from the trash
            disk.rename(trashed.path, path)
            log = open_log(
                path,
                tp,
                config=config,
                clock=self._log_manager.clock,
                recovery_point=state.recovery_point,
                log_start_offset=state.log_start_offset,
                topic_id=trashed.topic_id,
                random=self._log_manager.random,
                open_files=OpenFiles(_OPEN_SEGMENTS_MAX),
            )
        except OSError as error:
            self._log_manager.fail(directory, error)
            return None
        except (MalformedFile, KafkaError) as error:
            _log.error("cannot restore a log from the trash", path=str(path), why=str(error))
            with self._log_manager.offline_on_error(directory):
                damaged = path if path.exists() else trashed.path
                disk.rename(
                    damaged, directory.path / renamed_directory(tp, self._log_manager.random, STRAY_SUFFIX)
                )
            return None
        log.cleaner_offset, log.left_trash_at = state.cleaner_offset, log.log_end_offset
        return log

    def register_log(self, directory: LogDirectory, log: PartitionLog) -> None:
        """Register a restored log as its partition's log."""
        log.local.use_open_files(self._log_manager.open_files)
        self._log_manager.register_log(directory, log.topic_partition, log)

    def finish_restoring(self, restored: Sequence[tuple[LogDirectory, PartitionLog]]) -> None:
        """Write the offsets of restored logs to the checkpoints, then remove their trash state. Blocks."""
        for directory in {directory for directory, _ in restored}:
            with self._log_manager.offline_on_error(directory):
                directory.checkpoint()
                for home, log in restored:
                    if home is directory:
                        remove_state(log.directory)

    def purge(self, topic_ids: Collection[bytes]) -> None:
        """Schedule the removal of topics' logs; a directory that fails goes offline. Blocks."""
        for directory, trashed in self._trashed():
            if trashed.topic_id in topic_ids and directory.failure is None:
                with self._log_manager.offline_on_error(directory):
                    path = _mark_for_deletion(directory, trashed, self._log_manager.random)
                    self._log_manager.deletions.add(path, self._log_manager.clock.monotonic_ms())

    def sizes_bytes(self, topic_ids: Collection[bytes] | None = None) -> dict[bytes, int]:
        """Return the size in the trash of each topic, or of each of `topic_ids`, by id. Blocks."""
        sizes: dict[bytes, int] = {}
        for _, trashed in self._trashed():
            if topic_ids is None or trashed.topic_id in topic_ids:
                sizes[trashed.topic_id] = sizes.get(trashed.topic_id, 0) + _size_bytes(trashed.path)
        return sizes


def _size_bytes(path: Path) -> int:
    """Return the size of a directory's files; if it is being removed, of those seen so far."""
    size_bytes = 0
    with contextlib.suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            if entry.is_file():
                size_bytes += entry.stat().st_size
    return size_bytes
