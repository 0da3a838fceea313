"""Opening what lies in the log directories at a start, and settling which of it is in use."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import NamedTuple

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directory import LogDirectory, LogDirectoryError, has_move_mark
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.startup.checkpoints import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    MalformedFile,
)
from barnabas.log.startup.replica_selection import Ambiguous, FoundReplica, Role, decide_roles
from barnabas.log.trash.state import read_state
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import KafkaError

_log = get_logger("barnabas.log")

#: Topic name -> what its logs obey.
ConfigFor = Callable[[str], LogConfig]


class Opened(NamedTuple):
    """One directory of a partition."""

    directory: LogDirectory
    log: PartitionLog
    is_marked: bool  #: whether a move made it
    is_restored: bool = False  #: whether it comes from the trash, and has its state in its directory

    def found(self, log_dir: int) -> FoundReplica:
        """What decides its role."""
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
    """Open every log of a directory, and recover them unless it was stopped cleanly. Blocks.

    :raises OSError: When the disk fails, or holds damage that no recovery mends.
    """
    started_ms = clock.monotonic_ms()
    clean_shutdown = directory.has_clean_shutdown_marker
    recovery_points = directory.read_checkpoint(RECOVERY_POINT_FILE)
    start_offsets = directory.read_checkpoint(LOG_START_OFFSET_FILE)
    high_watermarks = directory.read_checkpoint(HIGH_WATERMARK_FILE)
    cleaner_offsets = directory.read_checkpoint(CLEANER_OFFSET_FILE)

    def open_log(place: tuple[TopicPartition, Path]) -> Opened:
        name, path = place
        state = read_state(path)
        start, recovery, cleaned = state or (
            start_offsets.get(name, 0),
            recovery_points.get(name, 0),
            cleaner_offsets.get(name, 0),
        )
        try:
            log = PartitionLog.open(
                path,
                name,
                config=config_for(name.topic),
                clock=clock,
                recovery_point=recovery,
                log_start_offset=start,
                high_watermark=0 if state else high_watermarks.get(name, 0),
                clean_shutdown=clean_shutdown and state is None,
                random=random,
                open_files=open_files,
            )
        except (MalformedFile, KafkaError) as error:
            raise OSError(f"{name}: {error}") from error
        log.cleaner_offset = cleaned
        return Opened(directory, log, has_move_mark(path), is_restored=state is not None)

    partitions = list(directory.partitions_on_disk())
    facts = {"path": str(directory.path), "logs_count": len(partitions)}
    recovers = bool(partitions) and not clean_shutdown
    if recovers:
        _log.warning("a log directory was not stopped cleanly: its logs are recovered", **facts)
    opened = list(pool.map(open_log, partitions))
    took_ms = clock.monotonic_ms() - started_ms
    _log.info("opened the logs of a directory", **facts, recovered=recovers, took_ms=took_ms)
    return opened


def select_replicas(
    directories: Sequence[LogDirectory], opened: Sequence[Opened], *, any_offline: bool
) -> Iterator[tuple[Opened, Role]]:
    """What becomes of each, in the order of their partitions; see `found_replicas`.

    :raises LogDirectoryError: When two directories hold the same partition.
    """
    by_name: dict[TopicPartition, list[Opened]] = {}
    for each in opened:
        by_name.setdefault(each.log.topic_partition, []).append(each)
    for name, replicas in sorted(by_name.items()):
        found = [each.found(directories.index(each.directory)) for each in replicas]
        try:
            roles = decide_roles(found, any_offline=any_offline)
        except Ambiguous as error:
            first, second, *_ = (each.directory.path for each in replicas)
            message = f"{name} lies in {first} and in {second}: remove one of them"
            raise LogDirectoryError(message) from error
        yield from zip(replicas, roles, strict=True)
