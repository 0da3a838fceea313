"""Opens the logs in the log directories at startup, and selects the current replica of each partition."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import NamedTuple

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    MalformedFile,
)
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directory import LogDirectory, LogDirectoryError, has_move_mark
from barnabas.log.open_log import open_log
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.startup.replica_selection import AmbiguousReplicasError, FoundReplica, Role, decide_roles
from barnabas.log.trash.state import read_state
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import KafkaError

_log = get_logger("barnabas.log")

#: Returns the log config of a topic name.
ConfigFor = Callable[[str], LogConfig]


class Opened(NamedTuple):
    """One directory of a partition."""

    directory: LogDirectory
    log: PartitionLog
    is_marked: bool  #: whether a move created it
    is_restored: bool = False  #: whether it comes from the trash, with its offsets in its directory

    def to_found_replica(self, log_dir: int) -> FoundReplica:
        """Return the facts that determine its role."""
        return FoundReplica(
            log_dir=log_dir,
            topic_id=self.log.topic_id,
            is_future=self.log.directory.name != str(self.log.topic_partition),
            is_marked=self.is_marked,
            latest_epoch=-1 if self.log.latest_epoch is None else self.log.latest_epoch,
            log_end_offset=self.log.log_end_offset,
        )


def open_logs(
    directory: LogDirectory,
    config_for: ConfigFor,
    pool: ThreadPoolExecutor,
    *,
    clock: Clock,
    random: Random,
    open_files: OpenFiles,
) -> list[Opened]:
    """Open all logs of a directory, and recover them after an unclean shutdown. Blocks.

    :raises OSError: When the disk fails, or a file is damaged beyond recovery.
    """
    started_ms = clock.monotonic_ms()
    clean_shutdown = directory.has_clean_shutdown_marker
    recovery_points = directory.read_checkpoint(RECOVERY_POINT_FILE)
    start_offsets = directory.read_checkpoint(LOG_START_OFFSET_FILE)
    high_watermarks = directory.read_checkpoint(HIGH_WATERMARK_FILE)
    cleaner_offsets = directory.read_checkpoint(CLEANER_OFFSET_FILE)

    def open_one(partition: tuple[TopicPartition, Path]) -> Opened:
        name, path = partition
        state = read_state(path)
        start_offset, recovery_point, cleaner_offset = state or (
            start_offsets.get(name, 0),
            recovery_points.get(name, 0),
            cleaner_offsets.get(name, 0),
        )
        try:
            log = open_log(
                path,
                name,
                config=config_for(name.topic),
                clock=clock,
                recovery_point=recovery_point,
                log_start_offset=start_offset,
                high_watermark=0 if state else high_watermarks.get(name, 0),
                clean_shutdown=clean_shutdown and state is None,
                random=random,
                open_files=open_files,
            )
        except (MalformedFile, KafkaError) as error:
            raise OSError(f"{name}: {error}") from error
        log.cleaner_offset = cleaner_offset
        log.left_trash_at = 0 if state is None else log.log_end_offset
        return Opened(directory, log, has_move_mark(path), is_restored=state is not None)

    partitions = list(directory.partitions_on_disk())
    fields = {"path": str(directory.path), "logs_count": len(partitions)}
    needs_recovery = bool(partitions) and not clean_shutdown
    if needs_recovery:
        _log.warning("log directory was not shut down cleanly; recovering its logs", **fields)
    opened = list(pool.map(open_one, partitions))
    duration_ms = clock.monotonic_ms() - started_ms
    _log.info("opened the logs of a log directory", **fields, recovered=needs_recovery, took_ms=duration_ms)
    return opened


def select_replicas(
    directories: Sequence[LogDirectory], opened: Sequence[Opened], *, any_offline: bool
) -> Iterator[tuple[Opened, Role]]:
    """Yield the role of each opened log, ordered by partition; see `replica_selection`.

    :raises LogDirectoryError: When two directories hold the same partition.
    """
    by_name: dict[TopicPartition, list[Opened]] = {}
    for opened_log in opened:
        by_name.setdefault(opened_log.log.topic_partition, []).append(opened_log)
    for name, replicas in sorted(by_name.items()):
        candidates = [replica.to_found_replica(directories.index(replica.directory)) for replica in replicas]
        try:
            roles = decide_roles(candidates, any_offline=any_offline)
        except AmbiguousReplicasError as error:
            first, second, *_ = (replica.directory.path for replica in replicas)
            message = f"{name} exists in {first} and in {second}: remove one of the two directories"
            raise LogDirectoryError(message) from error
        yield from zip(replicas, roles, strict=True)
