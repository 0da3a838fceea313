"""All of `log.dirs`: opening, creating, deleting and checkpointing the logs of a node."""

import contextlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from types import MappingProxyType

from barnabas.base.clock import Clock
from barnabas.base.ids import ZERO_UUID, TopicPartition
from barnabas.log.files import REMOVAL_RETRY_MS, space_advice, sync_file_system
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
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.open_files import OPEN_SEGMENTS_MAX, OpenFiles
from barnabas.log.startup.log_loader import ConfigFor, Opened, open_logs, select_replicas
from barnabas.log.startup.replica_selection import Role
from barnabas.log.trash.state import keep_state, remove_state, trash_directory
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import ErrorCode, KafkaError

#: Flushing waits for the disk, which serves several at once.
_SYNC_THREADS_COUNT = 8

#: From more logs on the whole file system is flushed instead. Measured with 10,000: 0.4 s instead of 5.
_SYNCED_ALONE_COUNT_MAX = 256

#: A future replica is written at its end alone.
_FUTURE_OPEN_SEGMENTS_MAX = 4

#: Wishes for logs that there are not yet; beyond, the oldest is forgotten: names can be made up without end.
_PREFERRED_COUNT_MAX = 10_000

#: Stands for the name of a log that is deleted and may come back.
TRASH = "-trash"

_log = get_logger("barnabas.log")


class LogManager:
    """The logs of a node, spread over its directories. One thread calls it unless a method says otherwise."""

    def __init__(
        self, directories: Sequence[LogDirectory], clock: Clock, random: Random, open_segments_max: int
    ) -> None:
        self._directories = directories
        self.clock = clock
        self.random = random
        self.open_files = OpenFiles(open_segments_max)
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._homes: dict[TopicPartition, LogDirectory] = {}
        #: Being moved: where to, and what is there of it.
        self._futures: dict[TopicPartition, tuple[LogDirectory, PartitionLog]] = {}
        #: Replaced by their futures, and where they lie until those are on the disk.
        self._retired: dict[TopicPartition, tuple[LogDirectory, PartitionLog]] = {}
        #: Where somebody wants logs that there are not yet.
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        #: (monotonic milliseconds from which it may go, path)
        self._deletions: list[tuple[int, Path]] = []
        #: Told when a directory goes offline.
        self.on_directory_failure: Callable[[LogDirectory], None] | None = None
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
        open_segments_max: int = OPEN_SEGMENTS_MAX,
    ) -> "LogManager":
        """Lock the directories and check whose they are; `load` opens the logs. Blocks.

        :raises LogDirectoryError: When one is in use, cannot be written to or is another node's.
        """
        directories = [LogDirectory(path) for path in paths]
        assert directories, "log.dirs names at least one directory"
        try:
            for directory in directories:
                directory.lock()
                directory.identify(cluster_id, node_id, random)
        except (LogDirectoryError, OSError):
            for directory in directories:
                directory.unlock()
            raise
        return cls(directories, clock, random, open_segments_max)

    # Looking

    @property
    def logs(self) -> Mapping[TopicPartition, PartitionLog]:
        """Every log by its partition."""
        return MappingProxyType(self._logs)

    @property
    def directories(self) -> Sequence[LogDirectory]:
        """Every directory, those offline included."""
        return self._directories

    @property
    def any_offline(self) -> bool:
        """Whether a directory failed: a partition that `get` does not find may lie there."""
        return any(directory.failure is not None for directory in self._directories)

    def is_cordoned(self, directory: LogDirectory) -> bool:
        """Whether a directory keeps what it holds but receives no new logs (KIP-1066)."""
        return self.cordons(directory.path)

    def get(self, topic_partition: TopicPartition) -> PartitionLog | None:
        """The log of a partition, or None when this node has none."""
        return self._logs.get(topic_partition)

    def at(self, path: str) -> LogDirectory | None:
        """The directory of that absolute path, as `log.dirs` has it."""
        return next((each for each in self._directories if str(each.path) == path), None)

    def directory_of(self, topic_partition: TopicPartition) -> LogDirectory | None:
        """Where the log of a partition lies."""
        return self._homes.get(topic_partition)

    # Loading

    def load(self, config_for: ConfigFor, threads_count: int = 2) -> None:
        """Open every log on disk, recovering those of directories that were not stopped cleanly. Blocks.

        A directory that fails goes offline; the others load.

        :raises LogDirectoryError: When two directories hold the same partition, or all have failed.
        """
        opened: list[Opened] = []
        with ThreadPoolExecutor(threads_count) as pool:
            for directory in self._directories:
                try:
                    for leftover in directory.leftovers():
                        shutil.rmtree(leftover, ignore_errors=True)
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
            failures = "; ".join(f"{each.path}: {each.failure}" for each in self._directories)
            raise LogDirectoryError(f"no log directory can be used: {failures}")
        for each, role in select_replicas(self._directories, opened, any_offline=self.any_offline):
            with self.offline_on_error(each.directory):
                self._assume(role, each)
        self._settle_restored([each for each in opened if each.is_restored])

    def _settle_restored(self, restored: Sequence[Opened]) -> None:
        """Let the checkpoints know what only the directories of logs from the trash did."""
        if restored:
            self.checkpoint()
        for each in restored:
            with self.offline_on_error(each.directory):
                if each.directory.failure is None:
                    remove_state(each.log.directory)

    def _assume(self, role: Role, opened: Opened) -> None:
        directory, log, is_marked, _ = opened
        if role is Role.CURRENT:
            if log.directory.name != str(log.topic_partition):
                _log.warning("only the future replica of a partition is left", path=str(log.directory))
                log.rename_directory(directory.path / str(log.topic_partition))
            if is_marked and not self.any_offline:
                remove_move_mark(log.directory)
            self.adopt(directory, log.topic_partition, log)
        elif role is Role.FUTURE:
            write_move_mark(log.directory)
            self._hold_future(directory, log)
        elif role is not Role.LEFT:
            self._give_up(directory, log, DELETE_SUFFIX if role is Role.COPY else STRAY_SUFFIX)

    def begin_service(self) -> None:
        """Say that records will be appended: to be called after `load` and before the first of them. Blocks.

        Until then what was stopped cleanly stays so, even if the process is killed.
        """
        for directory in self._directories:
            try:
                if directory.failure is None:
                    directory.remove_clean_shutdown_marker()
            except OSError as error:
                self.fail(directory, error)

    def adopt(self, directory: LogDirectory, name: TopicPartition, log: PartitionLog) -> None:
        """Let a log that lies in `directory` be the partition's."""
        self._logs[name] = directory.logs[name] = log
        self._homes[name] = directory
        log.on_failure = lambda error: self.fail(directory, error)

    def fail(self, directory: LogDirectory, error: OSError) -> None:
        """Take a directory offline, with every log in it."""
        if directory.failure is not None:
            return
        directory.failure = str(error)
        fields = {"path": str(directory.path), "why": str(error), **space_advice(error)}
        _log.error("a log directory is offline, and every log in it", **fields)
        for log in (*directory.logs.values(), *directory.futures.values()):
            log.failure = log.failure or f"the disk of {directory.path} failed: {error}"
        if self.on_directory_failure is not None:
            self.on_directory_failure(directory)

    @contextlib.contextmanager
    def offline_on_error(self, directory: LogDirectory) -> Iterator[None]:
        """What is done to a directory: it goes offline where its disk fails, and what is left is not done."""
        try:
            yield
        except OSError as error:
            self.fail(directory, error)

    # Creating and deleting

    def create(self, topic: str, partition: int, topic_id: bytes, config: LogConfig) -> PartitionLog:
        """A new, empty log in the directory that has the fewest; one that is cordoned is the last resort.

        :raises KafkaError: KAFKA_STORAGE_ERROR when no directory is online or the disk fails.
        """
        name = TopicPartition(topic, partition)
        assert name not in self._logs, name
        online = [directory for directory in self._directories if directory.failure is None]
        if not online:
            message = f"{name} cannot be created: every log directory is offline"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        directory = self._place(name, online)
        try:
            directory.forget_checkpoints(name)
            log = PartitionLog.create(
                directory.path / str(name),
                name,
                topic_id=topic_id,
                config=config,
                clock=self.clock,
                random=self.random,
                open_files=self.open_files,
            )
        except OSError as error:
            self.fail(directory, error)
            message = f"{name} cannot be created: {error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error
        self.adopt(directory, name, log)
        return log

    def _place(self, name: TopicPartition, online: Sequence[LogDirectory]) -> LogDirectory:
        """Where a new log goes: as somebody wished, else where there are fewest."""
        preferred = self._preferred.pop(name, None)
        if preferred is not None and preferred in online:
            return preferred
        open_ones = [directory for directory in online if not self.is_cordoned(directory)]
        return min(open_ones or online, key=lambda directory: len(directory.logs))

    def prefer(self, name: TopicPartition, directory: LogDirectory) -> None:
        """Create the log of a partition in `directory`, should it be created while this process lives."""
        self._preferred[name] = directory
        if len(self._preferred) > _PREFERRED_COUNT_MAX:
            del self._preferred[next(iter(self._preferred))]

    def delete_async(self, name: TopicPartition, *, keep: bool = False) -> None:
        """Rename the log's directory at once; `delete_due` removes it after `file.delete.delay.ms`.

        With `keep` it stays, in the trash. What a move has of it goes in any case.
        """
        self._give_up_log(name, TRASH if keep else DELETE_SUFFIX)
        if name in self._retired:
            self.finish_promotion(name)
        if name in self._futures:
            self.drop_future(name)

    def rename_stray(self, name: TopicPartition) -> None:
        """Set aside the log of a partition that the cluster does not know; nobody deletes it."""
        self._give_up_log(name, STRAY_SUFFIX)
        if name in self._futures:
            self.drop_future(name)

    def _give_up_log(self, name: TopicPartition, suffix: str) -> None:
        log, directory = self._logs.pop(name), self._homes.pop(name)
        del directory.logs[name]
        log.abandon()
        self._give_up(directory, log, suffix)

    def _give_up(self, directory: LogDirectory, log: PartitionLog, suffix: str) -> None:
        """Let nobody use the log any more and rename its directory."""
        log.failure = log.failure or f"{log.topic_partition} is deleted"
        name = renamed_directory(log.topic_partition, self.random, suffix)
        try:
            if suffix == TRASH:
                name = trash_directory(log.topic_partition, log.topic_id or ZERO_UUID)
                keep_state(log)
            path = log.directory.rename(directory.path / name)
        except OSError as error:
            self.fail(directory, error)
            return
        if suffix == DELETE_SUFFIX:
            due_ms = self.clock.monotonic_ms() + log.config.file_delete_delay_ms
            self._deletions.append((due_ms, path))

    def remove_soon(self, path: Path) -> None:
        """Have `delete_due` remove a directory whose name says that it is deleted."""
        self._deletions.append((self.clock.monotonic_ms(), path))

    def set_aside(self, name: TopicPartition, path: Path) -> Path:
        """Rename a directory on the disk of a partition's log to one that a start removes; gives back which.

        :raises OSError: When the disk fails.
        """
        target = renamed_directory(name, self.random, DELETE_SUFFIX)
        return path.rename(self._homes[name].path / target)

    def replace(self, name: TopicPartition, log: PartitionLog) -> None:
        """Let a log that was `set_aside` be the partition's, and give up the one that was.

        :raises KafkaError: KAFKA_STORAGE_ERROR when the disk fails, which takes the directory offline.
        """
        directory = self._homes[name]
        self._give_up_log(name, DELETE_SUFFIX)
        try:
            log.rename_directory(directory.path / str(name))
        except OSError as error:
            self.fail(directory, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} cannot be replaced: {error}") from error
        log.count_files_in(self.open_files)
        self.adopt(directory, name, log)

    # Moving to another directory

    @property
    def futures(self) -> Mapping[TopicPartition, PartitionLog]:
        """The replicas that are being moved, as far as they are in their new directories."""
        return MappingProxyType({name: log for name, (_, log) in self._futures.items()})

    def future_directory_of(self, name: TopicPartition) -> LogDirectory | None:
        """Where a partition is being moved to."""
        found = self._futures.get(name)
        return None if found is None else found[0]

    def create_future(self, name: TopicPartition, directory: LogDirectory) -> PartitionLog:
        """An empty log in `directory` that can take the place of a partition's log once it has everything.

        :raises KafkaError: KAFKA_STORAGE_ERROR when the disk fails.
        """
        source = self._logs[name]
        assert directory is not self._homes[name], directory.path
        assert name not in self._futures, name
        try:
            directory.forget_checkpoints(name)
            log = PartitionLog.open(
                directory.path / future_directory(name, self.random),
                name,
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
            message = f"{name} cannot be moved to {directory.path}: {error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error
        self._hold_future(directory, log)
        return log

    def _hold_future(self, directory: LogDirectory, log: PartitionLog) -> None:
        """Keep a future replica; it belongs to the thread that copies, so it must not call us when it fails."""
        log.count_files_in(OpenFiles(_FUTURE_OPEN_SEGMENTS_MAX))
        directory.futures[log.topic_partition] = log
        self._futures[log.topic_partition] = directory, log

    def drop_future(self, name: TopicPartition) -> PartitionLog:
        """Give up a move: rename the new directory, to be removed like a deleted log's.

        Gives back the log, for whoever copies into it to `abandon` once the thread is done with it.
        """
        directory = self._futures[name][0]
        log = self.leave_future(name)
        self._give_up(directory, log, DELETE_SUFFIX)
        return log

    def leave_future(self, name: TopicPartition) -> PartitionLog:
        """Stop a move whose source is offline: what has been copied stays, for the next start to look at."""
        directory, log = self._futures.pop(name)
        del directory.futures[name]
        return log

    def promote_future(self, name: TopicPartition) -> PartitionLog:
        """Let the future replica, which has everything, be the partition's log; gives it back.

        The old one stays where it is until `finish_promotion`: the new one may not be on the disk yet.

        :raises KafkaError: KAFKA_STORAGE_ERROR when the disk fails; the old one stays in use then.
        """
        directory, log = self._futures[name]
        assert name not in self._retired, name
        try:
            log.rename_directory(directory.path / str(name))
        except OSError as error:
            self.fail_future(name, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} cannot be moved: {error}") from error
        log.count_files_in(self.open_files)
        del self._futures[name], directory.futures[name]
        old, home = self._logs[name], self._homes[name]
        self._retired[name] = home, old
        del home.logs[name]
        self.adopt(directory, name, log)
        return log

    def is_retired(self, log: PartitionLog) -> bool:
        """Whether the log has been replaced, and `finish_promotion` is still to come."""
        found = self._retired.get(log.topic_partition)
        return found is not None and found[1] is log

    def finish_promotion(self, name: TopicPartition) -> None:
        """Give up the log that was replaced; what replaces it must be flushed, its offsets checkpointed."""
        home, old = self._retired.pop(name)
        old.abandon()
        self._give_up(home, old, DELETE_SUFFIX)
        directory = self._homes.get(name)
        if directory is not None and directory.failure is None:
            try:
                remove_move_mark(self._logs[name].directory)
            except OSError as error:
                self.fail(directory, error)

    def fail_future(self, name: TopicPartition, error: OSError) -> None:
        """Take the directory that a partition is being moved to offline: its disk fails."""
        self.fail(self._futures[name][0], error)

    def delete_due(self, now_ms: int) -> int:
        """Remove what `delete_async` renamed long enough ago, on the monotonic clock; gives back how many.

        What cannot be removed is due again after a while. Blocks; may run in a thread.
        """
        removed_count = 0
        for entry in [entry for entry in tuple(self._deletions) if entry[0] <= now_ms]:
            self._deletions.remove(entry)
            _, path = entry
            shutil.rmtree(path, ignore_errors=True)
            if path.exists():
                self._deletions.append((now_ms + REMOVAL_RETRY_MS, path))
            else:
                removed_count += 1
        return removed_count

    # Stopping

    def checkpoint(self, only: LogDirectory | None = None) -> None:
        """Write the checkpoints of every directory, or of one. Blocks; may run in a thread."""
        for directory in self._directories if only is None else (only,):
            if directory.failure is None:
                try:
                    directory.checkpoint()
                except OSError as error:
                    self.fail(directory, error)

    def close(self) -> None:
        """Flush and close every log; what closes without an error is marked as cleanly stopped. Blocks."""
        for directory in self._directories:
            try:
                if directory.failure is None:
                    self._close_directory(directory)
            except OSError as error:
                self.fail(directory, error)
            finally:
                directory.unlock()

    def _close_directory(self, directory: LogDirectory) -> None:
        logs = [*directory.logs.values(), *directory.futures.values()]
        for log in logs:
            log.close_files()
        unsynced_count = sum(not log.is_synced for log in logs)
        if unsynced_count > _SYNCED_ALONE_COUNT_MAX and sync_file_system(directory.path):
            for log in logs:
                log.note_synced()
        else:
            with ThreadPoolExecutor(_SYNC_THREADS_COUNT) as pool:
                for _ in pool.map(PartitionLog.sync_closed, logs):
                    pass
        directory.checkpoint()
        directory.write_clean_shutdown_marker()
