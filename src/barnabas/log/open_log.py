"""Create the log of a new replica, or open that of an existing one."""

from pathlib import Path
from random import Random

from barnabas.base import disk
from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import read_partition_metadata
from barnabas.log.leader_epoch_cache import LeaderEpochs, open_epochs
from barnabas.log.local_log import LocalLog
from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import PartitionLog
from barnabas.log.producers.producer_recovery import RestoredProducers, restore_producers
from barnabas.log.producers.producer_snapshot import remove_stray_snapshots
from barnabas.log.producers.producer_state_manager import ProducerStateManager
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.segments.segment import Segment
from barnabas.log.segments.segments import Segments
from barnabas.log.startup.recovery import load_segments


def create_log(
    directory: Path,
    topic_partition: TopicPartition,
    *,
    topic_id: bytes,
    config: LogConfig,
    clock: Clock,
    random: Random,
    open_files: OpenFiles,
) -> PartitionLog:
    """Create a new, empty log; unlike `open_log`, it expects no files.

    :raises OSError: If the disk fails or the directory exists.
    """
    disk.make_directory(directory)
    segment = Segment.create(
        directory,
        0,
        open_files,
        now_ms=clock.wall_ms(),
        preallocate_bytes=config.preallocate_bytes,
        is_first=True,
    )
    local = LocalLog(
        directory,
        topic_partition,
        Segments([segment]),
        clock=clock,
        random=random,
        open_files=open_files,
        recovery_point=0,
        config=config,
    )
    log = PartitionLog(
        local,
        topic_id=None,
        config=config,
        clock=clock,
        epochs=LeaderEpochs(directory),
        producers=RestoredProducers(ProducerStateManager(topic_partition), 0),
        log_start_offset=0,
        log_end_offset=0,
    )
    log.set_topic_id(topic_id)
    return log


def open_log(
    directory: Path,
    topic_partition: TopicPartition,
    *,
    config: LogConfig,
    clock: Clock,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    high_watermark: int = 0,
    clean_shutdown: bool = False,
    topic_id: bytes | None = None,
    random: Random | None = None,
    open_files: OpenFiles | None = None,
) -> PartitionLog:
    """Open or create the log in `directory`; after an unclean shutdown recover it. Blocks.

    :raises OSError, MalformedFile: If the disk fails; if `partition.metadata` is damaged.
    """
    disk.make_directory(directory, exist_ok=True)
    epochs = open_epochs(directory)
    if epochs.is_damaged:
        clean_shutdown, recovery_point = False, 0
    segments, end_offset, _, gap_offset = load_segments(
        directory,
        topic_partition,
        config,
        epochs,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        clean_shutdown=clean_shutdown,
        now_ms=clock.wall_ms(),
    )
    is_flushed = clean_shutdown and gap_offset is None
    start_offset = _remove_outside(directory, epochs, segments, log_start_offset, end_offset)
    local = LocalLog(
        directory,
        topic_partition,
        segments,
        clock=clock,
        random=random or Random(),
        open_files=OpenFiles() if open_files is None else open_files,
        recovery_point=end_offset if is_flushed else _unflushed_from(segments, recovery_point),
        config=config,
    )
    local.unsynced_directory = not clean_shutdown
    log = PartitionLog(
        local,
        topic_id=read_partition_metadata(directory),
        config=config,
        clock=clock,
        epochs=epochs,
        producers=restore_producers(directory, topic_partition, segments, start_offset, end_offset),
        log_start_offset=start_offset,
        log_end_offset=end_offset,
    )
    log.update_high_watermark(high_watermark)
    log.gap_offset = gap_offset
    if topic_id is not None and log.topic_id is None:
        log.set_topic_id(topic_id)
    return log


def _unflushed_from(segments: Segments, recovery_point: int) -> int:
    """Return the base offset of the first segment that was recovered.

    Recovery writes its indexes again, so the next flush must include them, although its records are flushed.
    """
    return min(recovery_point, next(iter(segments.since(recovery_point))).base_offset)


def _remove_outside(
    directory: Path, epochs: LeaderEpochs, segments: Segments, log_start_offset: int, end_offset: int
) -> int:
    """Remove leader epochs and producer snapshots outside the recovered log; return the offset where it starts."""
    start_offset = max(log_start_offset, segments[0].base_offset)
    epochs.truncate_from_end(end_offset)
    epochs.truncate_from_start(start_offset)
    epochs.recovered()
    remove_stray_snapshots(directory, [segment.base_offset for segment in segments])
    return start_offset
