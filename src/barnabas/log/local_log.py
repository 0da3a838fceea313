"""The files of one replica and the operations on all of them: roll, flush, retain, truncate, close."""

import errno
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.log.files import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_file,
    sync_path,
)
from barnabas.log.leader_epoch_cache import LeaderEpochs
from barnabas.log.log_config import LogConfig
from barnabas.log.producers.producer_recovery import RestoredProducers, restore_producers
from barnabas.log.producers.producer_snapshot import write_snapshot
from barnabas.log.producers.producer_state_manager import ProducerStateManager
from barnabas.log.retention import deletable_count
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.segments.segment import Segment
from barnabas.log.segments.segments import Segments
from barnabas.log.startup.checkpoints import PARTITION_METADATA_FILE, write_partition_metadata
from barnabas.wire.errors import ErrorCode, KafkaError


class LocalLog:
    """Segments, leader epochs and producer state of one replica, and the offsets that bound them.

    Not thread-safe, except for `flush`. Disk errors become KAFKA_STORAGE_ERROR, take the log offline and are
    reported to `on_failure`.
    """

    def __init__(
        self,
        directory: Path,
        topic_partition: TopicPartition,
        *,
        topic_id: bytes | None,
        config: LogConfig,
        clock: Clock,
        random: Random,
        segments: Segments,
        epochs: LeaderEpochs,
        producers: RestoredProducers,
        log_start_offset: int,
        log_end_offset: int,
        open_files: OpenFiles,
    ) -> None:
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        #: Replaced as a whole when the topic's configs change.
        self.config = config
        self.epochs = epochs
        #: At most `high_watermark`.
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        #: Between `log_start_offset` and `log_end_offset`; moved by `update_high_watermark` alone.
        self.high_watermark = log_start_offset
        #: Everything before this offset is flushed to the disk; at most `log_end_offset`.
        self.recovery_point = log_start_offset
        #: Everything before this offset has been compacted; may be outside the log after a truncation.
        self.cleaner_offset = 0
        #: Number of truncations so far; tells a reader of a copy of the log whether the copy is still valid.
        self.truncations_count = 0
        #: Why the log is offline, or None if it is online.
        self.failure: str | None = None
        self.on_failure: Callable[[OSError], None] | None = None
        self._clock = clock
        self._random = random
        self._segments = segments
        self._producers, self._snapshot_offset = producers
        self._open_files = open_files
        self._flushed_ms = clock.monotonic_ms()
        #: Whether files were created or renamed since the directory was last flushed.
        self._unsynced_directory = True
        self._unsynced_close = False
        self._jitter_ms = self._draw_jitter()
        for segment in segments:
            segment.on_failure = self.take_offline

    # Failing

    def _offline(self) -> KafkaError:
        message = f"{self.topic_partition} is offline: {self.failure}"
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)

    def take_offline(self, error: OSError) -> KafkaError:
        """Stop all reads and writes after a disk error; returns the error to raise.

        Does nothing if the log is offline already, for example because it was deleted.
        """
        if self.failure is not None:
            return self._offline()
        self.failure = f"the disk of {self.directory.parent} failed: {error}"
        if self.on_failure is not None:
            self.on_failure(error)
        return self._offline()

    # Offsets

    @property
    def size_bytes(self) -> int:
        """Size of all batches."""
        return self._segments.size_bytes

    @property
    def first_segment_offset(self) -> int:
        """Base offset of the oldest segment; the log start offset may be within that segment."""
        return self._segments[0].base_offset

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, clamped to the log; returns the new value."""
        if offset > self.log_end_offset:
            offset = self.log_end_offset
        elif offset < self.log_start_offset:
            offset = self.log_start_offset
        self.high_watermark = offset
        self._producers.on_high_watermark_updated(offset)
        return offset

    def increment_log_start_offset(self, offset: int) -> bool:
        """Raise the log start offset (DeleteRecords); returns False if it is already at or after `offset`.

        :raises KafkaError: OFFSET_OUT_OF_RANGE above the high watermark, KAFKA_STORAGE_ERROR when the disk fails.
        """
        if self.failure is not None:
            raise self._offline()
        if offset > self.high_watermark:
            message = f"offset {offset} is above the high watermark {self.high_watermark}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, message)
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        try:
            self.epochs.truncate_from_start(offset)
        except OSError as error:
            raise self.take_offline(error) from error
        return True

    def begin_epoch(self, leader_epoch: int) -> None:
        """Record that the leader of `leader_epoch` writes from the log end offset on.

        A disk error takes the log offline but is not raised, because the leader is elected regardless of this disk.
        """
        if self.failure is not None:
            return
        try:
            self.epochs.assign(leader_epoch, self.log_end_offset)
        except OSError as error:
            self.take_offline(error)

    def set_topic_id(self, topic_id: bytes) -> None:
        """Store the topic id in the directory; it never changes."""
        assert self.topic_id in (None, topic_id), (self.topic_id, topic_id)
        write_partition_metadata(self.directory, topic_id)
        self.topic_id = topic_id

    # Rolling

    def roll(self) -> None:
        """Start a new segment at the log end offset, unless the active one is empty."""
        if self._segments.active.size_bytes:
            try:
                self._roll(self.log_end_offset)
            except OSError as error:
                raise self.take_offline(error) from error

    def _roll(self, base_offset: int) -> Segment:
        active = self._segments.active
        if active.base_offset == base_offset:
            return active
        active.close()
        self._take_snapshot(base_offset)
        segment = self._create_segment(base_offset)
        self._segments.append(segment)
        return segment

    def _create_segment(self, base_offset: int) -> Segment:
        self._unsynced_directory = True
        self._jitter_ms = self._draw_jitter()
        segment = Segment.create(
            self.directory,
            base_offset,
            self._open_files,
            now_ms=self._clock.wall_ms(),
            preallocate_bytes=self.config.preallocate_bytes,
        )
        segment.on_failure = self.take_offline
        return segment

    def _draw_jitter(self) -> int:
        """Return a random delay, so that segments of many partitions do not all roll at the same time."""
        jitter_ms = min(self.config.segment_jitter_ms, self.config.segment_ms)
        return self._random.randrange(jitter_ms) if jitter_ms else 0

    def _take_snapshot(self, offset: int) -> bool:
        if offset <= self._snapshot_offset:
            return False
        write_snapshot(self.directory, offset, self._producers.entries)
        self._snapshot_offset = offset
        return True

    # Flushing

    @property
    def needs_flush(self) -> bool:
        """Whether `flush.messages` is reached."""
        return self.log_end_offset - self.recovery_point >= self.config.flush_messages

    def flush_due(self, now_ms: int) -> bool:
        """Whether `flush.ms` has passed (on the monotonic clock), or a segment was rolled and is not flushed yet.

        Flushing rolled segments means, as in Apache Kafka, that only the active one needs recovery after a crash.
        """
        if self.failure is not None or self.log_end_offset == self.recovery_point:
            return False
        rolled = self.recovery_point < self._segments.active.base_offset
        return rolled or now_ms - self._flushed_ms >= self.config.flush_ms

    def flush(self) -> int:
        """Flush everything appended so far to the disk; returns the new recovery point. Blocks.

        May run in a thread while the event loop appends: it opens its own file descriptors and flushes only what
        existed when it began.

        :raises OSError: When the disk fails, or failed before: a later flush that succeeds would prove nothing.
        """
        if self.failure is not None:
            raise OSError(errno.EIO, self.failure)
        end_offset = self.log_end_offset
        self._flushed_ms = self._clock.monotonic_ms()
        if end_offset > self.recovery_point:
            for segment in self._segments.since(self.recovery_point):
                self._sync_segment(segment)
        if self._unsynced_directory:
            self._unsynced_directory = False
            sync_path(
                self.directory / PARTITION_METADATA_FILE
            )  # a log without a topic id would become a stray
            sync_path(
                offset_file(self.directory, self._snapshot_offset, SNAPSHOT_SUFFIX)
            )  # written by `copy_state_from`
            sync_path(self.directory)
            sync_path(self.directory.parent)
        self.epochs.flush()
        if self.recovery_point < end_offset <= self.log_end_offset:
            self.recovery_point = end_offset
        return self.recovery_point

    def _sync_segment(self, segment: Segment) -> None:
        sync_path(segment.path)
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX, SNAPSHOT_SUFFIX):
            sync_path(offset_file(self.directory, segment.base_offset, suffix))

    # Retention

    def delete_old_segments(self, now_ms: int) -> list[Path]:
        """Delete segments by size, age and log start offset, none of them above the high watermark.

        They can no longer be read. Returns the renamed files, which `files.unlink_files` removes in a thread after
        `file.delete.delay.ms`.
        """
        if self.failure is not None:
            return []
        try:
            count = deletable_count(
                tuple(self._segments),
                self.config,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
                high_watermark=self.high_watermark,
                now_ms=now_ms,
            )
            if count == len(self._segments):
                self._roll(self.log_end_offset)
            return self._delete_first(count)
        except OSError as error:
            raise self.take_offline(error) from error

    def _delete_first(self, count: int) -> list[Path]:
        if not count:
            return []
        self.increment_log_start_offset(self._segments[count].base_offset)
        return self._mark_deleted(self._segments.remove_first(count))

    def _mark_deleted(self, segments: list[Segment]) -> list[Path]:
        renamed = [path for segment in segments for path in segment.mark_deleted()]
        return renamed + self._mark_snapshots_deleted(segments)

    def _mark_snapshots_deleted(self, segments: Sequence[Segment]) -> list[Path]:
        snapshots = [
            offset_file(self.directory, segment.base_offset, SNAPSHOT_SUFFIX) for segment in segments
        ]
        return [
            path.rename(path.with_name(path.name + DELETED_SUFFIX)) for path in snapshots if path.exists()
        ]

    # Compaction

    @property
    def segments(self) -> Segments:
        return self._segments

    def replace_segments(self, old: Sequence[Segment], new: Segment) -> list[Path]:
        """Replace neighbouring segments by `new`, whose files end in `.cleaned`; returns the files to remove later.

        After a crash at any point the next start either finds all of `old` or completes the replacement.

        :raises KafkaError: KAFKA_STORAGE_ERROR when the disk fails.
        """
        assert self._segments.contains_run(old), "the segments to replace must still belong to the log"
        self._unsynced_directory = True
        try:
            new.rename(SWAP_SUFFIX)
            removed = [path for segment in old for path in segment.mark_deleted()]
            removed += self._mark_snapshots_deleted(old[1:])
            new.rename("")
        except OSError as error:
            raise self.take_offline(error) from error
        new.on_failure = self.take_offline
        new.use_open_files(self._open_files)
        self._segments.replace(old, new)
        return removed

    # Truncation

    def truncate_to(self, offset: int) -> list[Path]:
        """Remove all batches from `offset` on; returns the files to remove later.

        Slices that were read beyond `offset` must not be used any more.
        """
        if offset >= self.log_end_offset:
            return []
        if offset < self._segments[0].base_offset:
            return self.truncate_fully_and_start_at(offset)
        self.truncations_count += 1
        try:
            removed = self._truncate_segments(offset)
            self.log_end_offset = offset
            self.log_start_offset = min(self.log_start_offset, offset)
            self.recovery_point = min(self.recovery_point, offset)
            self.cleaner_offset = min(self.cleaner_offset, offset)
            self.epochs.truncate_from_end(offset)
            self._restore_producers()
            self.update_high_watermark(self.high_watermark)
        except OSError as error:
            raise self.take_offline(error) from error
        return removed

    def _truncate_segments(self, offset: int) -> list[Path]:
        index = self._segments.floor_index(offset)
        removed: list[Path] = []
        if index + 1 < len(self._segments):
            removed = self._mark_deleted(self._segments.remove_from(index + 1))
        self._segments.active.truncate_to(offset, self._clock.wall_ms())
        return removed

    def truncate_fully_and_start_at(self, offset: int) -> list[Path]:
        """Remove all batches and start again with an empty log at `offset`; returns the files to remove later."""
        self.truncations_count += 1
        try:
            removed = self._mark_deleted(list(self._segments))
            self._segments.replace_all(self._create_segment(offset))
            self.log_start_offset = self.log_end_offset = self.high_watermark = self.recovery_point = offset
            self.cleaner_offset = offset
            self.epochs.clear()
            self._restore_producers()
        except OSError as error:
            raise self.take_offline(error) from error
        return removed

    def _restore_producers(self) -> None:
        self._producers, self._snapshot_offset = restore_producers(
            self.directory, self.topic_partition, self._segments, self.log_start_offset, self.log_end_offset
        )

    @property
    def last_producer_id(self) -> int:
        """The largest producer id in the producer state; -1 if there is none."""
        return max((entry.producer_id for entry in self._producers.entries), default=-1)

    # Moving to another directory

    @property
    def producer_states(self) -> ProducerStateManager:
        return self._producers

    def copy_state_from(self, source: "LocalLog") -> None:
        """Copy the bounds, leader epochs and producer state of `source`, of which this log has every batch.

        :raises KafkaError: KAFKA_STORAGE_ERROR when the disk fails; `source` is unchanged then.
        """
        assert self.log_end_offset == source.log_end_offset, (self.log_end_offset, source.log_end_offset)
        try:
            self.epochs.replace(source.epochs.entries)
            write_snapshot(self.directory, self.log_end_offset, source.producer_states.entries)
        except OSError as error:
            raise self.take_offline(error) from error
        self._producers, self._snapshot_offset = source.producer_states, self.log_end_offset
        self.config = source.config
        self.log_start_offset, self.cleaner_offset = source.log_start_offset, source.cleaner_offset
        self.update_high_watermark(source.high_watermark)

    def rename_directory(self, path: Path) -> None:
        """Rename the directory within the same disk; open files stay open.

        :raises OSError: When the disk fails.
        """
        self.directory = self.directory.rename(path)
        self._unsynced_directory = True
        self.epochs.relocate(path)
        for segment in self._segments:
            segment.relocate(path)

    def use_open_files(self, open_files: OpenFiles) -> None:
        """Use `open_files` from now on to limit the open segments."""
        self._open_files = open_files
        for segment in self._segments:
            segment.use_open_files(open_files)

    # Closing

    def close(self) -> None:
        """Flush and close, so that the next start needs no recovery. Blocks.

        :raises OSError: When the disk fails.
        """
        self.close_files()
        self.sync_closed()

    def close_files(self) -> None:
        """First half of `close`: write the producer snapshot and close the files.

        :raises OSError: When the disk fails.
        """
        self._unsynced_close = self._take_snapshot(self.log_end_offset)
        *rolled, active = self._segments
        for segment in rolled:
            segment.close_counted()
        active.close()

    def sync_closed(self) -> None:
        """Second half of `close`: flush everything to the disk. Blocks; may run in a thread.

        :raises OSError: When the disk fails.
        """
        self._unsynced_directory |= self._unsynced_close
        self.flush()
        if self._unsynced_close:
            self._sync_segment(self._segments.active)
            sync_path(offset_file(self.directory, self.log_end_offset, SNAPSHOT_SUFFIX))

    @property
    def is_synced(self) -> bool:
        """Whether `sync_closed` has nothing to do."""
        is_flushed = self.recovery_point == self.log_end_offset and self.epochs.is_synced
        return is_flushed and not self._unsynced_close and not self._unsynced_directory

    def mark_synced(self) -> None:
        """Replaces `sync_closed` when the whole file system has been flushed."""
        self.recovery_point = self.log_end_offset

    def abandon(self) -> None:
        """Close the files without writing anything, before the directory is deleted."""
        for segment in self._segments:
            segment.abandon()
