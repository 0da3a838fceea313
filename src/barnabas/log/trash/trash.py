"""Logs of deleted topics that may come back: set aside under names that tell whose they are.

The directory is `<topic>-<partition>.<topic id>-stray`: Apache Kafka passes over it, and nobody deletes it who does not
know that topic. What the checkpoints of its log directory say of a log lies in it beside the segments.
"""

import contextlib
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directory import DELETE_SUFFIX, LogDirectory, remove_move_mark, renamed_directory
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.startup.checkpoints import (
    CLEANER_OFFSET_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    MalformedFile,
    read_partition_metadata,
)
from barnabas.log.trash.state import TrashState, read_state, remove_state, trash_directory, write_state
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import KafkaError

_TRASHED = re.compile(r"(.+)-([0-9]+)\.([0-9a-f]{32})-stray")

#: Checkpoints that have what is in a `TrashState`, in its order.
_STATE_FILES = (LOG_START_OFFSET_FILE, RECOVERY_POINT_FILE, CLEANER_OFFSET_FILE)

#: While a log is opened beside the loop.
_OPEN_SEGMENTS_MAX = 4

_log = get_logger("barnabas.log")


class TrashedLog(NamedTuple):
    """One log that was set aside."""

    topic_id: bytes
    partition: int
    path: Path


def trashed_logs(directory: LogDirectory) -> Iterator[TrashedLog]:
    """Logs of a directory that were set aside, whosever they are. Blocks.

    :raises OSError: When the disk fails.
    """
    for path in directory.path.glob("*-stray"):
        match = _TRASHED.fullmatch(path.name)
        if match is not None:
            yield TrashedLog(bytes.fromhex(match[3]), int(match[2]), path)


def settle_trash(directories: LogManager, names: Mapping[bytes, str], gone: Collection[bytes]) -> None:
    """Before logs are loaded: do what the cluster has decided and a crash or a failed disk has left undone. Blocks.

    A disk that fails goes offline.

    :param names: Topics that there are, by their ids: their logs get their names back.
    :param gone: Ids of topics that nobody can bring back: the start removes their logs.
    """
    _set_misnamed_aside(directories, names)
    for directory in directories.directories:
        with directories.offline_on_error(directory):
            for found in list(trashed_logs(directory)):
                if found.topic_id in gone:
                    _mark_for_deletion(directory, found, directories.random)
                elif found.topic_id in names:
                    name = TopicPartition(names[found.topic_id], found.partition)
                    if not (directory.path / str(name)).exists():
                        write_state(found.path, read_state(found.path) or TrashState())
                        found.path.rename(directory.path / str(name))


def _set_misnamed_aside(directories: LogManager, names: Mapping[bytes, str]) -> None:
    """Put into the trash what lies under the name of another topic: its own has another name now, or none.

    So it is where a topic was deleted or renamed while the disk was offline. Only what may be so is looked at.
    """
    ids = {name: topic_id for topic_id, name in names.items()}
    lying: dict[LogDirectory, list[tuple[TopicPartition, Path]]] = {}
    wanted: Counter[TopicPartition] = Counter()
    for directory in directories.directories:
        with directories.offline_on_error(directory):
            lying[directory] = directory.partitions_on_disk()
            wanted.update(name for name, _ in lying[directory])
            wanted.update(
                TopicPartition(names[found.topic_id], found.partition)
                for found in trashed_logs(directory)
                if found.topic_id in names
            )
    for directory, places in lying.items():
        with directories.offline_on_error(directory):
            for name, path in places:
                if path.name == str(name) and (name.topic not in ids or wanted[name] > 1):
                    _set_aside(directory, name, path, names)


def _set_aside(directory: LogDirectory, name: TopicPartition, path: Path, names: Mapping[bytes, str]) -> None:
    try:
        topic_id = read_partition_metadata(path)
    except MalformedFile:
        return  # opening it tells
    if topic_id is None or names.get(topic_id) == name.topic:
        return
    if topic_id not in names and name.topic not in names.values():
        return  # it stands in nobody's way
    offsets = (directory.read_checkpoint(file).get(name, 0) for file in _STATE_FILES)
    write_state(path, TrashState(*offsets), sync=True)
    path.rename(directory.path / trash_directory(name, topic_id))


def _mark_for_deletion(directory: LogDirectory, found: TrashedLog, random: Random) -> Path:
    name = TopicPartition("trash", found.partition)
    return found.path.rename(directory.path / renamed_directory(name, random, DELETE_SUFFIX))


class TrashedLogs:
    """The trash of a node's directories. What blocks is for threads; one at a time."""

    def __init__(self, directories: LogManager) -> None:
        self._directories = directories

    def _found(self) -> Iterator[tuple[LogDirectory, TrashedLog]]:
        """What lies on the disks that are online; one that fails goes offline."""
        for directory in self._directories.directories:
            if directory.failure is None:
                found: list[TrashedLog] = []
                with self._directories.offline_on_error(directory):
                    found = list(trashed_logs(directory))
                yield from ((directory, each) for each in found)

    def of_topic(self, topic_id: bytes) -> dict[int, tuple[LogDirectory, TrashedLog]]:
        """A topic's logs, by partition. Blocks."""
        return {
            found.partition: (directory, found)
            for directory, found in self._found()
            if found.topic_id == topic_id
        }

    def reopen(
        self, directory: LogDirectory, found: TrashedLog, name: TopicPartition, config: LogConfig
    ) -> PartitionLog | None:
        """Give a log back the name of a partition and recover it; None when the disk fails. Blocks."""
        path = directory.path / str(name)
        try:
            state = read_state(found.path) or TrashState()
            directory.forget_checkpoints(name)
            remove_move_mark(found.path)
            write_state(found.path, state)  # whoever finds it again before the end knows where it is from
            found.path.rename(path)
            log = PartitionLog.open(
                path,
                name,
                config=config,
                clock=self._directories.clock,
                recovery_point=state.recovery_point,
                log_start_offset=state.log_start_offset,
                random=self._directories.random,
                open_files=OpenFiles(_OPEN_SEGMENTS_MAX),
            )
        except (OSError, MalformedFile, KafkaError) as error:
            _log.error("a log cannot be brought back", path=str(path), why=str(error))
            return None
        log.cleaner_offset = state.cleaner_offset
        return log

    def adopt(self, directory: LogDirectory, log: PartitionLog) -> None:
        """Let a log that was opened again be its partition's."""
        log.count_files_in(self._directories.open_files)
        self._directories.adopt(directory, log.topic_partition, log)

    def settled(self, restored: Sequence[tuple[LogDirectory, PartitionLog]]) -> None:
        """Let the checkpoints know what only the directories of logs that are back did. Blocks."""
        for directory in {directory for directory, _ in restored}:
            with self._directories.offline_on_error(directory):
                directory.checkpoint()
                for home, log in restored:
                    if home is directory:
                        remove_state(log.directory)

    def purge(self, topic_ids: Collection[bytes]) -> None:
        """Have the logs of topics removed; a disk that fails goes offline. Blocks."""
        for directory, found in self._found():
            if found.topic_id in topic_ids and directory.failure is None:
                with self._directories.offline_on_error(directory):
                    self._directories.remove_soon(
                        _mark_for_deletion(directory, found, self._directories.random)
                    )

    def sizes_bytes(self, topic_ids: Collection[bytes] | None = None) -> dict[bytes, int]:
        """How many bytes lie there of each topic, or of each of these, by id. Blocks."""
        sizes: dict[bytes, int] = {}
        for _, found in self._found():
            if topic_ids is None or found.topic_id in topic_ids:
                sizes[found.topic_id] = sizes.get(found.topic_id, 0) + _size_bytes(found.path)
        return sizes


def _size_bytes(path: Path) -> int:
    """The bytes of a directory's files; of one that somebody is just taking away, those seen so far."""
    size_bytes = 0
    with contextlib.suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            if entry.is_file():
                size_bytes += entry.stat().st_size
    return size_bytes
