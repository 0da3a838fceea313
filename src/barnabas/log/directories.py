"""All of `log.dirs`: opening, creating, deleting and checkpointing the logs of a node."""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from types import MappingProxyType

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import (
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    MalformedFile,
)
from barnabas.log.files import REMOVAL_RETRY_MS
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directory import (
    DELETE_SUFFIX,
    STRAY_SUFFIX,
    LogDirectory,
    LogDirectoryError,
    renamed_directory,
)
from barnabas.log.open_files import OPEN_SEGMENTS_MAX, OpenFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.wire.errors import ErrorCode, KafkaError

#: Flushing waits for the disk, which serves several at once.
_SYNC_THREADS_COUNT = 8

ConfigFor = Callable[[str], LogConfig]


class LogDirectories:
    """The logs of a node, spread over its directories. One thread calls it unless a method says otherwise."""

    def __init__(
        self, directories: Sequence[LogDirectory], clock: Clock, random: Random, open_segments_max: int
    ) -> None:
        self._directories = directories
        self._clock = clock
        self._random = random
        self._open_files = OpenFiles(open_segments_max)
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._homes: dict[TopicPartition, LogDirectory] = {}
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
    ) -> "LogDirectories":
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

    def directory_of(self, topic_partition: TopicPartition) -> LogDirectory | None:
        """Where the log of a partition lies."""
        return self._homes.get(topic_partition)

    # Loading

    def load(self, config_for: ConfigFor, threads_count: int = 2) -> None:
        """Open every log on disk, recovering those of directories that were not stopped cleanly. Blocks.

        A directory that fails goes offline; the others load.

        :raises LogDirectoryError: When two directories hold the same partition.
        """
        with ThreadPoolExecutor(threads_count) as pool:
            for directory in self._directories:
                try:
                    self._load_directory(directory, config_for, pool)
                except OSError as error:
                    self._fail(directory, error)

    def _load_directory(
        self, directory: LogDirectory, config_for: ConfigFor, pool: ThreadPoolExecutor
    ) -> None:
        for leftover in directory.leftovers():
            shutil.rmtree(leftover, ignore_errors=True)
        clean_shutdown = directory.has_clean_shutdown_marker
        recovery_points = directory.read_checkpoint(RECOVERY_POINT_FILE)
        start_offsets = directory.read_checkpoint(LOG_START_OFFSET_FILE)
        high_watermarks = directory.read_checkpoint(HIGH_WATERMARK_FILE)

        def open_log(name: TopicPartition) -> PartitionLog:
            return PartitionLog.open(
                directory.path / str(name),
                name,
                config=config_for(name.topic),
                clock=self._clock,
                recovery_point=recovery_points.get(name, 0),
                log_start_offset=start_offsets.get(name, 0),
                high_watermark=high_watermarks.get(name, 0),
                clean_shutdown=clean_shutdown,
                random=self._random,
                open_files=self._open_files,
            )

        names = directory.partitions_on_disk()
        for name, log in zip(names, pool.map(_as_os_error(open_log), names), strict=True):
            self._adopt(directory, name, log)

    def begin_service(self) -> None:
        """Say that records will be appended: to be called after `load` and before the first of them. Blocks.

        Until then what was stopped cleanly stays so, even if the process is killed.
        """
        for directory in self._directories:
            try:
                if directory.failure is None:
                    directory.remove_clean_shutdown_marker()
            except OSError as error:
                self._fail(directory, error)

    def _adopt(self, directory: LogDirectory, name: TopicPartition, log: PartitionLog) -> None:
        if name in self._homes:
            message = f"{name} lies in {self._homes[name].path} and in {directory.path}: remove one of them"
            raise LogDirectoryError(message)
        self._logs[name] = directory.logs[name] = log
        self._homes[name] = directory
        log.on_failure = lambda error: self._fail(directory, error)

    def _fail(self, directory: LogDirectory, error: OSError) -> None:
        """Take a directory offline, with every log in it."""
        if directory.failure is not None:
            return
        directory.failure = str(error)
        for log in directory.logs.values():
            log.failure = log.failure or f"the disk of {directory.path} failed: {error}"
        if self.on_directory_failure is not None:
            self.on_directory_failure(directory)

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
        open_ones = [directory for directory in online if not self.is_cordoned(directory)]
        directory = min(open_ones or online, key=lambda directory: len(directory.logs))
        try:
            directory.forget_checkpoints(name)
            log = PartitionLog.create(
                directory.path / str(name),
                name,
                topic_id=topic_id,
                config=config,
                clock=self._clock,
                random=self._random,
                open_files=self._open_files,
            )
        except OSError as error:
            self._fail(directory, error)
            message = f"{name} cannot be created: {error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error
        self._adopt(directory, name, log)
        return log

    def delete_async(self, topic_partition: TopicPartition) -> None:
        """Rename the log's directory at once; `delete_due` removes it after `file.delete.delay.ms`."""
        renamed = self._rename(topic_partition, DELETE_SUFFIX)
        if renamed is not None:
            self._deletions.append(renamed)

    def rename_stray(self, topic_partition: TopicPartition) -> None:
        """Set aside the log of a partition that the cluster does not know; nobody deletes it."""
        self._rename(topic_partition, STRAY_SUFFIX)

    def _rename(self, name: TopicPartition, suffix: str) -> tuple[int, Path] | None:
        log, directory = self._logs.pop(name), self._homes.pop(name)
        del directory.logs[name]
        log.failure = log.failure or f"{name} is deleted"
        try:
            log.abandon()
            path = log.directory.rename(directory.path / renamed_directory(name, self._random, suffix))
        except OSError as error:
            self._fail(directory, error)
            return None
        return self._clock.monotonic_ms() + log.config.file_delete_delay_ms, path

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

    def checkpoint(self) -> None:
        """Write every directory's checkpoints. Blocks; may run in a thread."""
        for directory in self._directories:
            if directory.failure is None:
                try:
                    directory.checkpoint()
                except OSError as error:
                    self._fail(directory, error)

    def close(self) -> None:
        """Flush and close every log; what closes without an error is marked as cleanly stopped. Blocks."""
        for directory in self._directories:
            try:
                if directory.failure is None:
                    self._close_directory(directory)
            except OSError as error:
                self._fail(directory, error)
            finally:
                directory.unlock()

    def _close_directory(self, directory: LogDirectory) -> None:
        logs = directory.logs.values()
        for log in logs:
            log.close_files()
        with ThreadPoolExecutor(_SYNC_THREADS_COUNT) as pool:
            for _ in pool.map(PartitionLog.sync_closed, logs):
                pass
        directory.checkpoint()
        directory.write_clean_shutdown_marker()


def _as_os_error(
    open_log: Callable[[TopicPartition], PartitionLog],
) -> Callable[[TopicPartition], PartitionLog]:
    """Damage that no recovery mends counts as a failing disk: its directory goes offline."""

    def opened(name: TopicPartition) -> PartitionLog:
        try:
            return open_log(name)
        except (MalformedFile, KafkaError) as error:
            raise OSError(f"{name}: {error}") from error

    return opened
