"""Logs of deleted topics that may come back: set aside under names that tell whose they are.

The directory is `<topic>-<partition>.<topic id>-stray`: Apache Kafka passes over it, and nobody deletes it who does not
know that topic. What the checkpoints of its log directory say of a log lies in it beside the segments.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import MalformedFile
from barnabas.log.directories import LogDirectories
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directory import DELETE_SUFFIX, LogDirectory, remove_move_mark, renamed_directory
from barnabas.log.open_files import OpenFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.log.trash_state import TrashState, read_state, remove_state, write_state
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import KafkaError

_TRASHED = re.compile(r"(.+)-([0-9]+)\.([0-9a-f]{32})-stray")

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


def settle_trash(
    directories: Sequence[LogDirectory], names: Mapping[bytes, str], gone: Collection[bytes], random: Random
) -> None:
    """Before logs are loaded: do what the cluster has decided and a crash has left undone. Blocks.

    :param names: Topics that there are, by their ids: their logs get their names back.
    :param gone: Ids of topics that nobody can bring back: the start removes their logs.
    :raises OSError: When a disk fails.
    """
    for directory in directories:
        for found in list(trashed_logs(directory)):
            if found.topic_id in gone:
                _doom(directory, found, random)
            elif found.topic_id in names:
                name = TopicPartition(names[found.topic_id], found.partition)
                if not (directory.path / str(name)).exists():
                    write_state(found.path, read_state(found.path) or TrashState())
                    found.path.rename(directory.path / str(name))


def _doom(directory: LogDirectory, found: TrashedLog, random: Random) -> Path:
    name = TopicPartition("trash", found.partition)
    return found.path.rename(directory.path / renamed_directory(name, random, DELETE_SUFFIX))


class TrashedLogs:
    """The trash of a node's directories. What blocks is for threads; one at a time."""

    def __init__(self, directories: LogDirectories) -> None:
        self._directories = directories

    def _online(self) -> Iterator[LogDirectory]:
        return (each for each in self._directories.directories if each.failure is None)

    def of_topic(self, topic_id: bytes) -> dict[int, tuple[LogDirectory, TrashedLog]]:
        """A topic's logs, by partition. Blocks."""
        return {
            found.partition: (directory, found)
            for directory in self._online()
            for found in trashed_logs(directory)
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

    def settled(self, directory: LogDirectory, log: PartitionLog) -> None:
        """Let the checkpoints know what only the log's own directory did. Blocks."""
        if read_state(log.directory) is not None:
            self._directories.checkpoint(directory)
            remove_state(log.directory)

    def purge(self, topic_ids: Collection[bytes]) -> None:
        """Have the logs of topics removed. Blocks."""
        for directory in self._online():
            for found in list(trashed_logs(directory)):
                if found.topic_id in topic_ids:
                    self._directories.remove_soon(_doom(directory, found, self._directories.random))

    def sizes_bytes(self) -> dict[bytes, int]:
        """How many bytes lie there of each topic, by id. Blocks."""
        sizes: dict[bytes, int] = {}
        for directory in self._online():
            for found in trashed_logs(directory):
                size_bytes = sum(file.stat().st_size for file in found.path.glob("*") if file.is_file())
                sizes[found.topic_id] = sizes.get(found.topic_id, 0) + size_bytes
        return sizes
