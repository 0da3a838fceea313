"""Manages all logs of a node in `log.dirs`: opens, creates, deletes, checkpoints and closes them."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from types import MappingProxyType

from barnabas.base import disk
from barnabas.base.clock import Clock
from barnabas.base.ids import ZERO_UUID, TopicPartition
from barnabas.log.closing import close_logs
from barnabas.log.deletions import Deletions
from barnabas.log.files import space_advice
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directory import (
    DELETE_SUFFIX,
    STRAY_SUFFIX,
    LogDirectory,
    LogDirectoryError,
    future_directory,
    remove_move_mark,
    renamed_directory,
    write_move_mark,
)
from barnabas.log.open_log import create_log, open_log
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.open_files import MAPS_MAX, OPEN_SEGMENTS_MAX, OpenFiles
from barnabas.log.startup.log_loader import ConfigFor, Opened, open_logs, select_replicas
from barnabas.log.startup.replica_selection import Role
from barnabas.log.trash.state import remove_state, rename_to_trash, save_state
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import ErrorCode, KafkaError

#: Open segments of a future replica, which is only written at its end.
_FUTURE_OPEN_SEGMENTS_MAX = 4

#: Largest number of preferred directories for logs that do not exist yet; the oldest is dropped, because clients can
#: name any number of partitions.
_PREFERRED_COUNT_MAX = 10_000

_log = get_logger("barnabas.log")


class LogManager:
    """The logs of a node, spread over its log directories. Not thread-safe, unless a method says otherwise."""

    def __init__(
        self, directories: Sequence[LogDirectory], clock: Clock, random: Random, maps_max: int = MAPS_MAX
    ) -> None:
        self._directories = directories
        self.clock = clock
        self.random = random
        self.open_files = OpenFiles(OPEN_SEGMENTS_MAX, maps_max)
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._homes: dict[TopicPartition, LogDirectory] = {}
        #: Future replicas and their directories, by partition.
        self._futures: dict[TopicPartition, tuple[LogDirectory, PartitionLog]] = {}
        #: Logs replaced by their future replicas, and their directories, until the replacements are flushed.
        self._retired: dict[TopicPartition, tuple[LogDirectory, PartitionLog]] = {}
        #: Preferred directories of logs that do not exist yet (AlterReplicaLogDirs).
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        self.deletions = Deletions()
        #: Called when a directory goes offline.
        self.on_directory_failure: Callable[[LogDirectory], None] | None = None
        #: Epoch of the broker's registration, which a clean shutdown leaves in the directories.
        self.broker_epoch = -1
        #: Of the metadata that the broker follows; -1 while it is not known.
        self.metadata_revision: Callable[[], int] = lambda: -1
        #: Whether a path may receive no new logs (`cordoned.log.dirs`).
        self.cordons: Callable[[Path], bool] = lambda path: False

    @classmethod
    def open(
        cls,
        paths: Iterable[Path],
        *,
        cluster_id: str,
        node_id: int,
        clock: Clock,
        random: Random,
        maps_max: int = MAPS_MAX,
    ) -> "LogManager":
        """Lock the directories and check that they belong to this node; `load` opens the logs. Blocks.

        :param maps_max: Number of maps from which on records are copied, see `OpenFiles`.
        :raises LogDirectoryError: When one is in use, cannot be written to or belongs to another node.
        """
        directories = [LogDirectory(path) for path in paths]
        assert directories, "log.dirs must contain at least one directory"
        try:
            for directory in directories:
                directory.lock()
                directory.identify(cluster_id, node_id, random)
        except (LogDirectoryError, OSError):
            for directory in directories:
                directory.unlock()
            raise
        return cls(directories, clock, random, maps_max)

    # Lookup

    @property
    def logs(self) -> Mapping[TopicPartition, PartitionLog]:
        return MappingProxyType(self._logs)

    @property
    def directories(self) -> Sequence[LogDirectory]:
        """All directories, including those that are offline."""
        return self._directories

    @property
    def any_offline(self) -> bool:
        """Whether a directory failed: a partition that `get` does not find may be in it."""
        return any(directory.failure is not None for directory in self._directories)

    def is_cordoned(self, directory: LogDirectory) -> bool:
        """Whether a directory keeps its logs but receives no new ones (KIP-1066)."""
        return self.cordons(directory.path)

    def get(self, tp: TopicPartition) -> PartitionLog | None:
        return self._logs.get(tp)

    def at(self, path: str) -> LogDirectory | None:
        """Return the directory with that absolute path, as configured in `log.dirs`."""
        return next((directory for directory in self._directories if str(directory.path) == path), None)

    def directory_of(self, tp: TopicPartition) -> LogDirectory | None:
        """Return the directory that contains the log of a partition."""
        return self._homes.get(tp)

    # Loading

    def load(self, config_for: ConfigFor, threads_count: int = 2) -> None:
        """Open every log on disk, recovering those in directories that were not shut down cleanly. Blocks.

        A directory that fails goes offline; the others load.

        :raises LogDirectoryError: When two directories hold the same partition, or all have failed.
        """
        opened: list[Opened] = []
        with ThreadPoolExecutor(threads_count) as pool:
            for directory in self._directories:
                try:
                    for leftover in directory.leftovers():
                        disk.remove_directory(leftover)
                    opened += open_logs(
                        directory,
                        config_for,
                        pool,
                        clock=self.clock,
                        random=self.random,
                        open_files=self.open_files,
                    )
                except OSError as error:
                    self.fail(directory, error)
        if all(directory.failure is not None for directory in self._directories):
            failures = "; ".join(f"{directory.path}: {directory.failure}" for directory in self._directories)
            raise LogDirectoryError(f"all log directories failed: {failures}")
        moved: list[PartitionLog] = []
        for replica, role in select_replicas(self._directories, opened, any_offline=self.any_offline):
            with self.offline_on_error(replica.directory):
                self._use_replica(role, replica)
            if role is Role.CURRENT and replica.is_marked:
                moved.append(replica.log)
        if moved:
            self.remove_marks(moved)
        self._finish_restoring([replica for replica in opened if replica.is_restored])

    def _finish_restoring(self, restored: Sequence[Opened]) -> None:
        """Write the offsets of logs from the trash to the checkpoints, then remove the files that contained them."""
        if restored:
            self.checkpoint()
        for replica in restored:
            with self.offline_on_error(replica.directory):
                if replica.directory.failure is None:
                    remove_state(replica.log.directory)

    def _use_replica(self, role: Role, opened: Opened) -> None:
        directory, log = opened.directory, opened.log
        if role is Role.CURRENT:
            if log.directory.name != str(log.topic_partition):
                _log.warning(
                    "only the future replica of a partition exists; using it as the log",
                    path=str(log.directory),
                )
                log.rename_directory(directory.path / str(log.topic_partition))
            self.register_log(directory, log.topic_partition, log)
        elif role is Role.FUTURE:
            write_move_mark(log.directory)
            self._hold_future(directory, log)
        elif role is Role.COPY:
            self._delete_later(directory, log)
        elif role is not Role.LEFT:
            target = renamed_directory(log.topic_partition, self.random, STRAY_SUFFIX)
            self._rename_away(directory, log, target)

    def begin_service(self) -> None:
        """Remove the clean shutdown markers, after `load` and before the first append. Blocks.

        Until then a killed process still leaves the logs marked as cleanly shut down.
        """
        for directory in self._directories:
            if directory.failure is None:
                with self.offline_on_error(directory):
                    directory.remove_clean_shutdown_marker()

    def was_closed_cleanly(self, broker_epoch: int, directory_ids: Collection[bytes]) -> bool:
        """Return whether these directories were closed in order in the last run, which had this broker epoch.

        To be called before `begin_service`. Otherwise the broker may lack records that it had acknowledged.
        """
        epochs = {directory.directory_id: directory.clean_shutdown_epoch() for directory in self._directories}
        return all(epochs.get(directory_id) == broker_epoch for directory_id in directory_ids)

    def register_log(self, directory: LogDirectory, tp: TopicPartition, log: PartitionLog) -> None:
        """Register a log that is in `directory` as the partition's log."""
        self._logs[tp] = directory.logs[tp] = log
        self._homes[tp] = directory
        log.local.on_failure = lambda error: self.fail(directory, error)

    def fail(self, directory: LogDirectory, error: OSError) -> None:
        """Take a directory offline, with all logs in it."""
        if directory.failure is not None:
            return
        directory.failure = str(error)
        fields = {"path": str(directory.path), "why": str(error), **space_advice(error)}
        _log.error("log directory failed; it and its logs are offline", **fields)
        for log in (*directory.logs.values(), *directory.futures.values()):
            log.local.failure = log.failure or f"the disk of {directory.path} failed: {error}"
        if self.on_directory_failure is not None:
            self.on_directory_failure(directory)

    @contextlib.contextmanager
    def offline_on_error(self, directory: LogDirectory) -> Iterator[None]:
        """Take the directory offline if the body raises an OSError; the rest of the body is skipped."""
        try:
            yield
        except OSError as error:
            self.fail(directory, error)

    def flush_directories(self) -> None:
        """Make renamed logs survive a power failure; a directory that fails goes offline. Blocks."""
        for directory in self._directories:
            if directory.failure is None:
                with self.offline_on_error(directory):
                    disk.sync_path(directory.path)

    # Creating and deleting

    def create(self, topic: str, partition: int, topic_id: bytes, config: LogConfig) -> PartitionLog:
        """Create an empty log in the directory with the fewest logs; a cordoned one is only used if there is no other.

        :raises KafkaError: KAFKA_STORAGE_ERROR when no directory is online or the disk fails.
        """
        tp = TopicPartition(topic, partition)
        assert tp not in self._logs, tp
        online = [directory for directory in self._directories if directory.failure is None]
        if not online:
            message = f"cannot create {tp}: all log directories are offline"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        directory = self._choose_directory(tp, online)
        try:
            directory.remove_from_checkpoints(tp)
            log = create_log(
                directory.path / str(tp),
                tp,
                topic_id=topic_id,
                config=config,
                clock=self.clock,
                random=self.random,
                open_files=self.open_files,
            )
        except OSError as error:
            self.fail(directory, error)
            message = f"cannot create {tp}: {error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error
        self.register_log(directory, tp, log)
        return log

    def _choose_directory(self, tp: TopicPartition, online: Sequence[LogDirectory]) -> LogDirectory:
        """Return the directory for a new log: the preferred one, else the one with the fewest logs."""
        preferred = self._preferred.pop(tp, None)
        if preferred is not None and preferred in online:
            return preferred
        uncordoned = [directory for directory in online if not self.is_cordoned(directory)]
        return min(uncordoned or online, key=lambda directory: len(directory.logs))

    def prefer(self, tp: TopicPartition, directory: LogDirectory) -> None:
        """Create the partition's log in `directory`, if it is created while this process runs."""
        self._preferred[tp] = directory
        if len(self._preferred) > _PREFERRED_COUNT_MAX:
            del self._preferred[next(iter(self._preferred))]

    def schedule_deletion(self, tp: TopicPartition, *, keep: bool = False) -> None:
        """Rename the log's directory now; `deletions` removes it after `file.delete.delay.ms`.

        With `keep` it goes to the trash instead. The future replica of a move is deleted in any case.
        """
        directory, log = self._unregister(tp)
        (self._move_to_trash if keep else self._delete_later)(directory, log)
        self._end_moves(tp)

    def rename_stray(self, tp: TopicPartition) -> None:
        """Rename the directory of a log whose partition is unknown to the cluster; strays are never deleted."""
        directory, log = self._unregister(tp)
        self._rename_away(directory, log, renamed_directory(tp, self.random, STRAY_SUFFIX))
        self._end_moves(tp)

    def _end_moves(self, tp: TopicPartition) -> None:
        """Delete what the moves of a log that is gone have left: the replaced log, and the future replica."""
        if tp in self._retired:
            self.finish_replacement(tp)
        if tp in self._futures:
            self.drop_future(tp)

    def _unregister(self, tp: TopicPartition) -> tuple[LogDirectory, PartitionLog]:
        log, directory = self._logs.pop(tp), self._homes.pop(tp)
        del directory.logs[tp]
        log.local.abandon()
        return directory, log

    def _move_to_trash(self, directory: LogDirectory, log: PartitionLog) -> None:
        log.local.failure = log.failure or f"{log.topic_partition} is deleted"
        with self.offline_on_error(directory):
            save_state(log)
            rename_to_trash(log.directory, log.topic_partition, log.topic_id or ZERO_UUID, self.random)

    def _delete_later(self, directory: LogDirectory, log: PartitionLog) -> None:
        target = renamed_directory(log.topic_partition, self.random, DELETE_SUFFIX)
        if (path := self._rename_away(directory, log, target)) is not None:
            self.deletions.add(path, self.clock.monotonic_ms() + log.config.file_delete_delay_ms)

    def _rename_away(self, directory: LogDirectory, log: PartitionLog, name: str) -> Path | None:
        """Fail all further use of the log and rename its directory; return None if the disk fails."""
        log.local.failure = log.failure or f"{log.topic_partition} is deleted"
        with self.offline_on_error(directory):
            return disk.rename(log.directory, directory.path / name)
        return None

    def rename_for_removal(self, tp: TopicPartition, path: Path) -> Path:
        """Rename a directory next to a partition's log so that a restart removes it; returns the new path.

        :raises OSError: When the disk fails.
        """
        return disk.rename(path, self._homes[tp].path / renamed_directory(tp, self.random, DELETE_SUFFIX))

    def replace(self, tp: TopicPartition, log: PartitionLog) -> None:
        """Make a log that was `rename_for_removal` the partition's log, and delete the current one.

        :raises KafkaError: KAFKA_STORAGE_ERROR when the disk fails, which takes the directory offline.
        """
        directory, replaced = self._unregister(tp)
        self._delete_later(directory, replaced)
        try:
            log.rename_directory(directory.path / str(tp))
        except OSError as error:
            self.fail(directory, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot replace {tp}: {error}") from error
        log.local.use_open_files(self.open_files)
        self.register_log(directory, tp, log)

    # Moving to another directory

    @property
    def futures(self) -> Mapping[TopicPartition, PartitionLog]:
        """Future replicas: logs that are being moved, as far as they are copied to their new directories."""
        return MappingProxyType({name: log for name, (_, log) in self._futures.items()})

    def future_directory_of(self, tp: TopicPartition) -> LogDirectory | None:
        future = self._futures.get(tp)
        return None if future is None else future[0]

    def create_future(self, tp: TopicPartition, directory: LogDirectory) -> PartitionLog:
        """Create a future replica: an empty log in `directory` that replaces the partition's log once it has caught up.

        :raises KafkaError: KAFKA_STORAGE_ERROR when the disk fails.
        """
        source = self._logs[tp]
        assert directory is not self._homes[tp], directory.path
        assert tp not in self._futures, tp
        try:
            directory.remove_from_checkpoints(tp)
            log = open_log(
                directory.path / future_directory(tp, self.random),
                tp,
                config=source.config,
                clock=self.clock,
                log_start_offset=source.first_segment_offset,
                topic_id=source.topic_id,
                random=self.random,
                open_files=OpenFiles(_FUTURE_OPEN_SEGMENTS_MAX),
            )
            write_move_mark(log.directory)
        except OSError as error:
            self.fail(directory, error)
            message = f"cannot move {tp} to {directory.path}: {error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error
        self._hold_future(directory, log)
        return log

    def _hold_future(self, directory: LogDirectory, log: PartitionLog) -> None:
        """Register a future replica. It has no `on_failure`, because the copying thread uses it."""
        log.local.use_open_files(OpenFiles(_FUTURE_OPEN_SEGMENTS_MAX))
        directory.futures[log.topic_partition] = log
        self._futures[log.topic_partition] = directory, log

    def drop_future(self, tp: TopicPartition) -> PartitionLog:
        """Cancel a move: rename the new directory for deletion.

        Returns the log; the copying thread must `abandon` it when it is done with it.
        """
        directory = self._futures[tp][0]
        log = self.detach_future(tp)
        self._delete_later(directory, log)
        return log

    def detach_future(self, tp: TopicPartition) -> PartitionLog:
        """Stop a move whose source is offline; the copy stays on disk for the next start."""
        directory, log = self._futures.pop(tp)
        del directory.futures[tp]
        return log

    def replace_current_with_future(self, tp: TopicPartition) -> PartitionLog:
        """Replace the current log with the future replica, which has caught up; returns the new current log.

        The old one stays in place until `finish_replacement`, because the new one may not be flushed yet.

        :raises KafkaError: KAFKA_STORAGE_ERROR when the disk fails; the old log stays in use then.
        """
        directory, log = self._futures[tp]
        assert tp not in self._retired, tp
        try:
            log.rename_directory(directory.path / str(tp))
        except OSError as error:
            self.fail_future_directory(tp, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot move {tp}: {error}") from error
        log.local.use_open_files(self.open_files)
        del self._futures[tp], directory.futures[tp]
        old, home = self._logs[tp], self._homes[tp]
        self._retired[tp] = home, old
        del home.logs[tp]
        self.register_log(directory, tp, log)
        return log

    def is_retired(self, log: PartitionLog) -> bool:
        """Whether the log has been replaced by its future replica, and `finish_replacement` has not run yet."""
        retired = self._retired.get(log.topic_partition)
        return retired is not None and retired[1] is log

    def finish_replacement(self, tp: TopicPartition) -> None:
        """Delete the replaced log. A completed move has flushed the new one before, and calls `remove_marks` then."""
        home, old = self._retired.pop(tp)
        old.local.abandon()
        self._delete_later(home, old)

    def remove_marks(self, moved: Iterable[PartitionLog]) -> None:
        """Remove the marks of moved logs, if it is certain that no disk has the logs that they replaced.

        Otherwise a later start could find two logs without a mark. Blocks; may run in a thread.
        """
        self.flush_directories()
        for log in moved:
            directory = self._homes.get(log.topic_partition)
            if directory is not None and not self.any_offline:
                with self.offline_on_error(directory):
                    remove_move_mark(log.directory)

    def fail_future_directory(self, tp: TopicPartition, error: OSError) -> None:
        """Take the directory that a partition is being moved to offline, because its disk failed."""
        self.fail(self._futures[tp][0], error)

    # Shutdown

    def checkpoint(self, only: LogDirectory | None = None) -> None:
        """Write the checkpoints of all directories, or of one. Blocks; may run in a thread."""
        for directory in self._directories if only is None else (only,):
            if directory.failure is None:
                with self.offline_on_error(directory):
                    directory.checkpoint(self.metadata_revision())

    def abandon(self) -> None:
        """Close all logs as a killed process leaves them: unflushed, and not marked as cleanly shut down."""
        for directory in self._directories:
            for log in (*directory.logs.values(), *directory.futures.values()):
                log.local.abandon()
            directory.unlock()

    def close(self) -> None:
        """Flush and close all logs; mark directories that closed without error as cleanly shut down. Blocks."""
        for directory in self._directories:
            try:
                if directory.failure is None:
                    with self.offline_on_error(directory):
                        close_logs([*directory.logs.values(), *directory.futures.values()], directory.path)
                        directory.checkpoint(self.metadata_revision())
                        directory.write_clean_shutdown_marker(self.broker_epoch)
            finally:
                directory.unlock()
