"""Opens the files of a log: removes leftovers, checks batches after a crash, finds start and end. Blocks."""

import itertools
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from barnabas.base import disk
from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import MalformedFile
from barnabas.log.files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_file,
    offset_of,
    unlink_files,
)
from barnabas.log.leader_epoch_cache import LeaderEpochs
from barnabas.log.log_config import LogConfig
from barnabas.log.producers.producer_recovery import producers_at, replay_batch
from barnabas.log.producers.producer_snapshot import read_snapshot, write_snapshot
from barnabas.log.producers.producer_state_manager import ProducerStateManager
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.segments.segment import RELATIVE_OFFSET_MAX, Segment
from barnabas.log.segments.segments import Segments
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import KafkaError
from barnabas.wire.records.batch import BatchHeader

_log = get_logger("barnabas.log")


class LoadedSegments(NamedTuple):
    """The result of `load_segments`."""

    segments: Segments
    log_end_offset: int
    #: Bytes that recovery truncated or deleted.
    discarded_bytes: int
    #: End of the first segment, among those that were not flushed, behind which offsets are missing; None if there is
    #: none. A power failure may have lost the last batches of the segment. So may compaction, which is no loss.
    gap_offset: int | None


def load_segments(
    directory: Path,
    topic_partition: TopicPartition,
    config: LogConfig,
    epochs: LeaderEpochs,
    *,
    recovery_point: int,
    log_start_offset: int,
    clean_shutdown: bool,
    now_ms: int,
) -> LoadedSegments:
    """Open a partition's segments; after an unclean shutdown check everything from `recovery_point` on."""
    names = _finish_interrupted_work(directory, os.listdir(directory))
    _remove_orphaned_indexes(directory, names)
    open_files = OpenFiles()
    logs = sorted(name for name in names if name.endswith(LOG_SUFFIX))
    segments = [_open_segment(directory / name, open_files, now_ms) for name in logs]
    producers = _Producers(directory, topic_partition, log_start_offset)
    discarded_bytes = 0
    if not clean_shutdown:
        discarded_bytes = _recover(segments, config, epochs, recovery_point, producers)
    rebuild_missing_indexes(segments, config, producers)
    end_offset = _next_offset(segments[-1]) if segments else log_start_offset
    if not segments or end_offset < log_start_offset:
        discarded_bytes += sum(segment.size_bytes for segment in segments)
        _remove(segments)
        segments = [
            Segment.create(
                directory,
                log_start_offset,
                open_files,
                now_ms=now_ms,
                preallocate_bytes=config.preallocate_bytes,
            )
        ]
        end_offset = log_start_offset
    if discarded_bytes:
        _log.warning(
            "truncated the incomplete or damaged end of a log",
            partition=str(topic_partition),
            discarded_bytes=discarded_bytes,
            log_end_offset=end_offset,
        )
    return LoadedSegments(
        Segments(segments), end_offset, discarded_bytes, _first_gap(segments, recovery_point)
    )


def _first_gap(segments: Sequence[Segment], recovery_point: int) -> int | None:
    for segment, following in itertools.pairwise(segments):
        if following.base_offset > recovery_point:
            end_offset = _next_offset(segment)
            if end_offset < following.base_offset:
                return end_offset
    return None


def _open_segment(path: Path, open_files: OpenFiles, now_ms: int) -> Segment:
    base_offset = offset_of(path.name)
    assert base_offset is not None, path
    size_bytes = path.stat().st_size
    return Segment(path.parent, base_offset, open_files, size_bytes=size_bytes, created_ms=now_ms)


def _finish_interrupted_work(directory: Path, names: list[str]) -> list[str]:
    """Remove files marked for deletion and complete swaps of compacted segments; returns the remaining names."""
    if not any(name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX)) for name in names):
        return names
    unlink_files([directory / name for name in names if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX))])
    cleaned = [offset_of(name) or 0 for name in names if name.endswith(CLEANED_SUFFIX)]
    swaps = [name for name in names if name.endswith(SWAP_SUFFIX)]
    if cleaned:
        # A split was interrupted: remove its output, because its input still exists.
        unlink_files([directory / name for name in swaps if (offset_of(name) or 0) >= min(cleaned)])
    _finish_swaps(directory)
    return os.listdir(directory)


def _remove_orphaned_indexes(directory: Path, names: list[str]) -> None:
    """Remove indexes that have no segment."""
    bases = {name.partition(".")[0] for name in names if name.endswith(LOG_SUFFIX)}
    indexes = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
    unlink_files(
        [directory / name for name in names if name.endswith(indexes) and name.partition(".")[0] not in bases]
    )


def _finish_swaps(directory: Path) -> None:
    swaps = list(directory.glob(f"*{SWAP_SUFFIX}"))
    logs = [path for path in swaps if path.name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    if logs:
        first = min(offset_of(path.name) or 0 for path in logs)
        end = max(_swap_end_offset(path) for path in logs)
        for path in directory.iterdir():
            offset = offset_of(path.name)
            if offset is not None and first <= offset < end and path not in swaps:
                disk.remove_file(path)
    for path in swaps:
        disk.rename(path, path.with_name(path.name.removesuffix(SWAP_SUFFIX)))


def _swap_end_offset(path: Path) -> int:
    segment = _open_segment(path, OpenFiles(), 0)
    segment.path = path
    end_offset = _scan_end(segment, 0)
    segment.close_counted()
    return end_offset


class _Producers(NamedTuple):
    """Restores the producer state before a segment, so that its markers show which transactions they abort."""

    directory: Path
    topic_partition: TopicPartition
    log_start_offset: int

    def before(self, segments: list[Segment], index: int) -> ProducerStateManager:
        """Return the producer state at the start of the segment at `index`.

        Segments before the first one were deleted; a snapshot has the producers that wrote only there.
        """
        offset = segments[index].base_offset
        if index == 0:
            states = ProducerStateManager(self.topic_partition)
            with suppress(MalformedFile, FileNotFoundError):
                states.replace(read_snapshot(offset_file(self.directory, offset, SNAPSHOT_SUFFIX)))
            return states
        earlier = Segments(segments[:index])
        return producers_at(
            self.directory, self.topic_partition, earlier, self.log_start_offset, offset
        ).states


def _recover(
    segments: list[Segment],
    config: LogConfig,
    epochs: LeaderEpochs,
    recovery_point: int,
    producers: _Producers,
) -> int:
    """Check the segments from the one that contains `recovery_point` on; stop at the first bad batch.

    A power failure may undo a truncation that was not flushed, although later files survive. Then batches have earlier
    leader epochs than `epochs` has for their offsets: the log ends before them. Or, if `epochs` was lost too, a segment
    reaches into the next one: the log ends with it, as it did before the truncation.

    Snapshots of the producers are written again: they may survive although batches that they include are lost.
    """
    first = max((i for i, segment in enumerate(segments) if segment.base_offset <= recovery_point), default=0)
    states = (
        producers.before(segments, first) if segments else ProducerStateManager(producers.topic_partition)
    )
    for index in range(first, len(segments)):
        if index > first:
            write_snapshot(producers.directory, segments[index].base_offset, states.entries)
        bad_bytes = rebuild(segments[index], config, states, epochs)
        if bad_bytes or _reaches_into_the_next(segments, index):
            dropped = segments[index + 1 :]
            del segments[index + 1 :]
            _remove(dropped)
            return bad_bytes + sum(segment.size_bytes for segment in dropped)
    return 0


def _reaches_into_the_next(segments: list[Segment], index: int) -> bool:
    following = segments[index + 1 : index + 2]
    return bool(following) and _next_offset(segments[index]) > following[0].base_offset


def rebuild(
    segment: Segment, config: LogConfig, states: ProducerStateManager, epochs: LeaderEpochs | None = None
) -> int:
    """Check every batch, rebuild the indexes, and truncate the file before the first bad batch.

    `states` must be the producer state at the start of the segment, and is updated to its end. Returns the number of
    truncated bytes.
    """
    segment.clear_indexes()
    valid_bytes, next_offset = 0, segment.base_offset
    try:
        for position, header in segment.headers():
            if not _is_sound(segment, position, header, next_offset) or _is_stale(header, epochs):
                break
            segment.index(position, header.size_bytes, header.last_offset, header.max_timestamp, config)
            if epochs is not None and header.partition_leader_epoch > _epoch_or_minus_one(epochs.latest):
                epochs.assign(header.partition_leader_epoch, header.base_offset)
            if header.producer_id >= 0 and (aborted := replay_batch(states, segment, position, header)):
                segment.transaction_index.append(aborted)
            valid_bytes, next_offset = position + header.size_bytes, header.next_offset
    except KafkaError:
        pass  # the bytes after the last good batch are not a batch; they are truncated below
    bad_bytes = segment.size_bytes - valid_bytes
    if bad_bytes:
        segment.cut(valid_bytes)
    segment.time_index.append(*segment.max_timestamp)
    return bad_bytes


def _epoch_or_minus_one(epoch: int | None) -> int:
    return -1 if epoch is None else epoch


def _is_sound(segment: Segment, position: int, header: BatchHeader, next_offset: int) -> bool:
    return (
        header.base_offset >= next_offset
        and header.last_offset_delta >= 0
        and header.last_offset - segment.base_offset <= RELATIVE_OFFSET_MAX
        and segment.crc_matches(position, header)
    )


def _is_stale(header: BatchHeader, epochs: LeaderEpochs | None) -> bool:
    """Return whether a leader of a later epoch has written the offset of a batch."""
    if epochs is None or header.partition_leader_epoch < 0:
        return False
    return header.partition_leader_epoch < _epoch_or_minus_one(epochs.epoch_at(header.base_offset))


def rebuild_missing_indexes(segments: list[Segment], config: LogConfig, producers: _Producers) -> None:
    """Rebuild indexes that are missing or damaged; an empty segment needs none."""
    for index, segment in enumerate(segments):
        if segment.size_bytes and not (segment.offset_index.exists and segment.transaction_index.is_sound):
            rebuild(segment, config, producers.before(segments, index))
            _sync_indexes(segment)


def _sync_indexes(segment: Segment) -> None:
    """Flush indexes that were written again, because no later flush includes them."""
    for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX):
        disk.sync_path(offset_file(segment.directory, segment.base_offset, suffix))
    disk.sync_path(segment.directory)


def _next_offset(segment: Segment) -> int:
    """Return the offset after the last batch, scanning from the last index entry on."""
    entry = segment.offset_index.last()
    return _scan_end(segment, segment.indexed_position(entry[0]) if entry else 0)


def _scan_end(segment: Segment, position: int) -> int:
    next_offset, end = segment.base_offset, position
    for start, header in segment.headers(position):
        next_offset, end = header.next_offset, start + header.size_bytes
    if end != segment.size_bytes:
        segment.cut(end)  # after a clean shutdown this is preallocated space, not a partial batch
    return next_offset


def _remove(segments: list[Segment]) -> None:
    for segment in segments:
        segment.close_counted()
        unlink_files(
            [offset_file(segment.directory, segment.base_offset, suffix) for suffix in SEGMENT_SUFFIXES]
        )
        disk.remove_file(offset_file(segment.directory, segment.base_offset, SNAPSHOT_SUFFIX))
