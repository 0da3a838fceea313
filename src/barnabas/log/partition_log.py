"""One replica of a partition: its offsets, appends, reads, searches, retention and truncation."""

from collections.abc import Callable, Sequence
from pathlib import Path

from barnabas.base.clock import Clock
from barnabas.log.append_info import AppendInfo, duplicate_info
from barnabas.log.checkpoints import write_partition_metadata
from barnabas.log.leader_epoch_cache import LeaderEpochs
from barnabas.log.local_log import Flushed, LocalLog
from barnabas.log.log_config import LogConfig
from barnabas.log.producers.log_producers import LogProducers
from barnabas.log.producers.producer_recovery import RestoredProducers
from barnabas.log.producers.producer_state_manager import VerificationGuard
from barnabas.log.retention import deletable_count
from barnabas.log.segments.segment import Segment
from barnabas.log.segments.segments import LogSlice, Segments
from barnabas.log.validation import (
    AppendOrigin,
    ValidatedBatch,
    prepare_coordinator_batch,
    validate,
    validate_inline,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import (
    BATCH_OVERHEAD_BYTES,
    NO_TIMESTAMP,
    BatchHeader,
    assign,
    crc_matches,
    iterate_headers,
    placed,
    read_header,
    stamp_append_time,
)
from barnabas.wire.records.control import EndTransactionMarker, encode_end_marker

_EMPTY = memoryview(b"")


class PartitionLog:
    """A `LocalLog` with offsets, leader epochs and producers. Not thread-safe, except for `sync`.

    Disk errors become KAFKA_STORAGE_ERROR, and take the log offline.
    """

    def __init__(
        self,
        local: LocalLog,
        *,
        topic_id: bytes | None,
        config: LogConfig,
        clock: Clock,
        epochs: LeaderEpochs,
        producers: RestoredProducers,
        log_start_offset: int,
        log_end_offset: int,
    ) -> None:
        self.topic_partition = local.topic_partition
        self.topic_id = topic_id
        #: Replaced as a whole when the topic's configs change.
        self.config = config
        self.epochs = epochs
        #: At most `high_watermark`.
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        #: Between `log_start_offset` and `log_end_offset`; moved by `update_high_watermark` alone.
        self.high_watermark = log_start_offset
        #: Everything before this offset has been compacted; may be outside the log after a truncation.
        self.cleaner_offset = 0
        #: Log end offset when the log left the trash, until this replica leads; 0 if it was not there.
        self.left_trash_at = 0
        #: Behind this offset records may be missing after a power failure; see `LoadedSegments.gap_offset`.
        self.gap_offset: int | None = None
        #: How often something appended was removed or changed in place; shows whether a copy is still valid.
        self.rewrites_count = 0
        self.on_flushed: Callable[[], None] = lambda: None  #: called by `Flusher`
        self.local = local
        self.producers = LogProducers(local, producers, clock)
        self.clock = clock

    @property
    def directory(self) -> Path:
        return self.local.directory

    @property
    def segments(self) -> Segments:
        return self.local.segments

    @property
    def failure(self) -> str | None:
        """Why the log is offline, or None if it is online."""
        return self.local.failure

    def take_offline(self, error: OSError) -> KafkaError:
        return self.local.take_offline(error)

    def check_online(self) -> None:
        """Check that the disk has not failed: since then offsets and leader epochs are not kept up to date.

        :raises KafkaError: KAFKA_STORAGE_ERROR.
        """
        if self.local.failure is not None:
            raise self.local.offline_error()

    # Offsets

    @property
    def latest_epoch(self) -> int | None:
        """The epoch of the last leader that wrote, or None for an empty log."""
        return self.epochs.latest

    @property
    def recovery_point(self) -> int:
        """Everything before this offset is flushed to the disk."""
        return self.local.recovery_point

    @property
    def size_bytes(self) -> int:
        """Size of all batches."""
        return self.local.segments.size_bytes

    @property
    def first_segment_offset(self) -> int:
        """Base offset of the oldest segment; the log start offset may be within that segment."""
        return self.local.segments[0].base_offset

    @property
    def last_stable_offset(self) -> int:
        """Every transaction below this offset is complete: the limit for `read_committed`.

        If the log start offset is within an open transaction and within a batch, this is below it, as in Kafka.
        """
        return self.producers.last_stable_offset(
            self.log_start_offset, self.high_watermark, self.log_end_offset
        )

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, clamped to the log; return the new value."""
        if offset > self.log_end_offset:
            offset = self.log_end_offset
        elif offset < self.log_start_offset:
            offset = self.log_start_offset
        self.high_watermark = offset
        self.producers.states.on_high_watermark_updated(offset)
        return offset

    def increment_log_start_offset(self, offset: int) -> bool:
        """Raise the log start offset (DeleteRecords); return False if it is already at or after `offset`.

        :raises KafkaError: OFFSET_OUT_OF_RANGE above the high watermark, KAFKA_STORAGE_ERROR if the disk fails.
        """
        self.check_online()
        if offset > self.high_watermark:
            message = f"offset {offset} is above the high watermark {self.high_watermark}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, message)
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        try:
            self.epochs.truncate_from_start(offset)
        except OSError as error:
            raise self.local.take_offline(error) from error
        return True

    def begin_epoch(self, leader_epoch: int) -> None:
        """Record that the leader of `leader_epoch` writes from the log end offset on.

        A disk error takes the log offline but is not raised, because the leader is elected regardless of this disk.
        """
        if self.local.failure is not None:
            return
        try:
            self.epochs.assign(leader_epoch, self.log_end_offset)
        except OSError as error:
            self.local.take_offline(error)

    def set_topic_id(self, topic_id: bytes) -> None:
        """Store the topic id in the directory; it never changes."""
        assert self.topic_id in (None, topic_id), (self.topic_id, topic_id)
        write_partition_metadata(self.directory, topic_id)
        self.topic_id = topic_id

    # Appending

    def append_as_leader(
        self,
        batch: ValidatedBatch | memoryview,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verification: VerificationGuard | None = None,
    ) -> AppendInfo:
        """Assign offsets to one batch in place and append it; validate records first that are not validated yet.

        The first batch of a transaction needs the `verification` that `start_verification` returned.

        :raises KafkaError: What `validate` raises, RECORD_LIST_TOO_LARGE, INVALID_PRODUCER_EPOCH,
            OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE, KAFKA_STORAGE_ERROR; nothing is appended then.
        """
        self.check_online()
        config, now_ms = self.config, self.clock.wall_ms()
        if isinstance(batch, memoryview):
            if origin is AppendOrigin.COORDINATOR:
                batch = prepare_coordinator_batch(batch, config, now_ms)
            else:
                batch = validate_inline(batch, config, now_ms) or validate(batch, config, now_ms)
        header, records = batch
        size_bytes = len(records)
        if size_bytes > config.segment_bytes:
            raise self._too_large_for_segment(size_bytes)
        _, batch_length, _, _, _, _, last_offset_delta, _, max_timestamp, producer_id, _, _, _ = header
        if producer_id >= 0:
            duplicate = self.producers.states.check(
                BatchHeader(*header),
                sequences=origin is AppendOrigin.CLIENT,
                verification=verification,
                verifies=config.verifies_transactions,
            )
            if duplicate is not None:
                return duplicate_info(duplicate, self.log_start_offset)
        base_offset = self.log_end_offset
        last_offset = base_offset + last_offset_delta
        assign(records, base_offset, batch_length, leader_epoch)
        self._write(records, base_offset, last_offset, leader_epoch, max_timestamp, now_ms)
        if producer_id >= 0:
            self.producers.update(records, placed(header, base_offset, leader_epoch))
        append_time_ms = max_timestamp if config.stamps_append_time else NO_TIMESTAMP
        return AppendInfo(base_offset, last_offset, append_time_ms, self.log_start_offset, False, size_bytes)

    def validate(self, records: memoryview) -> ValidatedBatch:
        """Call `validation.validate` with the topic's current configs; may run in any thread."""
        return validate(records, self.config, self.clock.wall_ms())

    def append_transaction_marker(
        self, marker: EndTransactionMarker, leader_epoch: int, transaction_version: int = 0
    ) -> AppendInfo:
        """Append a transaction marker, whether or not the transaction has records here.

        :raises KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR.
        """
        self.check_online()
        self.producers.states.check_transaction_marker(marker, transaction_version)
        config, now_ms, offset = self.config, self.clock.wall_ms(), self.log_end_offset
        if config.stamps_append_time:
            marker = marker._replace(timestamp_ms=now_ms)
        records = memoryview(encode_end_marker(marker))
        if config.stamps_append_time:
            stamp_append_time(records, 0, read_header(records), now_ms)
        assign(records, offset, len(records) - BATCH_OVERHEAD_BYTES, leader_epoch)
        self._write(records, offset, offset, leader_epoch, marker.timestamp_ms, now_ms)
        self.producers.end_transaction(marker, offset)
        append_time_ms = now_ms if config.stamps_append_time else NO_TIMESTAMP
        return AppendInfo(offset, offset, append_time_ms, self.log_start_offset, False, len(records))

    def append_copied(self, records: memoryview) -> AppendInfo:
        """Append batches of another replica, with their offsets and leader epochs.

        :raises KafkaError: CORRUPT_MESSAGE, OFFSET_OUT_OF_RANGE if a batch is below the log end offset,
            KAFKA_STORAGE_ERROR. Batches before the bad one are appended.
        """
        self.check_online()
        first_offset, size_bytes = self.log_end_offset, 0
        for position, header in iterate_headers(records):
            if not crc_matches(records, position, header):
                message = f"batch at offset {header.base_offset} from the leader does not match its CRC"
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
            if header.base_offset < self.log_end_offset:
                message = (
                    f"batch at offset {header.base_offset} is below the log end offset {self.log_end_offset}"
                )
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, message)
            self._write(
                records[position : position + header.size_bytes],
                header.base_offset,
                header.last_offset,
                header.partition_leader_epoch,
                header.max_timestamp,
                self.clock.wall_ms(),
            )
            if header.producer_id >= 0:
                self.producers.update(records[position:], header)
            size_bytes += header.size_bytes
        return AppendInfo(
            first_offset, self.log_end_offset - 1, NO_TIMESTAMP, self.log_start_offset, False, size_bytes
        )

    def _write(
        self,
        records: memoryview,
        base_offset: int,
        last_offset: int,
        leader_epoch: int,
        max_timestamp: int,
        now_ms: int,
    ) -> None:
        """Append one batch: its bytes, leader epoch and index entries."""
        segment = self.local.segments.active
        config = self.config
        try:
            if leader_epoch != self.epochs.latest and leader_epoch >= 0:
                self.epochs.assign(leader_epoch, base_offset)
            if segment.should_roll(
                len(records), last_offset, max_timestamp, now_ms, config, self.local.jitter_ms
            ):
                segment = self._roll(base_offset)
            segment.append(records, last_offset, max_timestamp, config)
        except OSError as error:
            raise self.local.take_offline(error) from error
        self.log_end_offset = last_offset + 1

    def _too_large_for_segment(self, size_bytes: int) -> KafkaError:
        message = f"batch of {size_bytes} bytes: segment.bytes allows {self.config.segment_bytes}"
        return KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, message)

    # Reading

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        upper_bound_offset: int,
        *,
        min_one_batch: bool = False,
        may_copy: bool = True,
    ) -> LogSlice:
        """Return bytes of one segment, from the batch that contains `start_offset` on, below `upper_bound_offset`.

        The result is cut at `max_bytes`, even inside a batch; with `min_one_batch` the first batch is whole (KIP-74).
        Small results are copied, which is faster, unless `may_copy` is False.

        :raises KafkaError: OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE for damaged files.
        """
        self.check_online()
        if not self.log_start_offset <= start_offset <= self.log_end_offset:
            raise self._out_of_range(start_offset)
        if start_offset >= upper_bound_offset:
            return LogSlice(_EMPTY, self.local.segments.active.base_offset, 0)
        try:
            segment, position, size_bytes = self.local.segments.find(
                start_offset, max_bytes, upper_bound_offset, self.log_end_offset, whole_batch=min_one_batch
            )
            data = segment.view(position, size_bytes, may_copy=may_copy) if size_bytes > 0 else _EMPTY
            return LogSlice(data, segment.base_offset, position)
        except OSError as error:
            raise self.local.failed_read(error) from error

    def _out_of_range(self, offset: int) -> KafkaError:
        offsets = f"[{self.log_start_offset}, {self.log_end_offset}]"
        message = f"offset {offset} of {self.topic_partition} is outside the log's range {offsets}"
        return KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, message)

    # Rolling and flushing

    def roll(self) -> None:
        """Start a new segment at the log end offset, unless the active one is empty."""
        if self.local.segments.active.size_bytes:
            try:
                self._roll(self.log_end_offset)
            except OSError as error:
                raise self.local.take_offline(error) from error

    def _roll(self, base_offset: int) -> Segment:
        active = self.local.segments.active
        if active.base_offset == base_offset:
            return active
        self.producers.take_snapshot(base_offset)
        return self.local.roll(base_offset, self.config)

    @property
    def needs_flush(self) -> bool:
        """Whether `flush.messages` is reached, or the log was truncated and nothing may be appended before a flush."""
        end_offset = self.log_end_offset if self.gap_offset is None else self._before_gap(self.log_end_offset)
        unflushed_count = end_offset - self.local.recovery_point
        return unflushed_count >= self.config.flush_messages or self.local.has_unsynced_cut

    def sync(self) -> Flushed:
        """Flush everything appended so far. Blocks; may run in a thread, but `mark_flushed` only on the event loop.

        :raises OSError: If the disk fails, or failed before.
        """
        flushed = Flushed(self.rewrites_count, self.log_end_offset)
        self.local.sync(flushed.end_offset, self.producers.snapshot_offset)
        self.epochs.flush()
        return flushed

    def mark_flushed(self, flushed: Flushed) -> None:
        """Move the recovery point; not beyond a gap, nor if some of what was flushed was removed or changed."""
        if flushed.rewrites_count == self.rewrites_count:
            self.local.mark_flushed(self._before_gap(flushed.end_offset))

    def _before_gap(self, offset: int) -> int:  # no flush moves the recovery point beyond a gap
        return offset if self.gap_offset is None else min(offset, self.gap_offset)

    def flush(self) -> int:
        """Call `sync` and `mark_flushed`, for a log that nothing else uses meanwhile; return the recovery point."""
        self.mark_flushed(self.sync())
        return self.recovery_point

    # Retention, compaction and truncation

    def delete_old_segments(self, now_ms: int) -> list[Path]:
        """Delete segments by size, age and log start offset, none of them above the high watermark.

        They can no longer be read. Return the renamed files, which `files.unlink_files` removes in a thread after
        `file.delete.delay.ms`.
        """
        if self.local.failure is not None:
            return []
        segments = self.local.segments
        try:
            count = deletable_count(
                tuple(segments),
                self.config,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
                high_watermark=self.high_watermark,
                now_ms=now_ms,
            )
            if not count:
                return []
            if count == len(segments):
                self._roll(self.log_end_offset)
            self.increment_log_start_offset(segments[count].base_offset)
            return self.local.remove_first(count)
        except OSError as error:
            raise self.local.take_offline(error) from error

    def replace_segments(self, old: Sequence[Segment], new: Segment) -> list[Path]:
        """Call `LocalLog.replace`.

        :raises KafkaError: KAFKA_STORAGE_ERROR if the disk fails.
        """
        try:
            return self.local.replace(old, new)
        except OSError as error:
            raise self.local.take_offline(error) from error

    def truncate_to(self, offset: int) -> list[Path]:
        """Remove all batches and leader epochs from `offset` on; return the files to unlink later.

        Slices that were read beyond `offset` must not be used any more.
        """
        try:
            if offset >= self.log_end_offset:
                self.epochs.truncate_from_end(offset)  # this replica may have led without writing
                return []
            if offset < self.first_segment_offset:
                return self.truncate_fully_and_start_at(offset)
            removed = self.local.truncate_to(offset)
            self.log_end_offset = offset
            self.rewrites_count += 1  # after the end, which a flush in a thread reads last
            self.log_start_offset = min(self.log_start_offset, offset)
            self.cleaner_offset = min(self.cleaner_offset, offset)
            self.left_trash_at = min(self.left_trash_at, offset)
            self.epochs.truncate_from_end(offset)
            self.producers.restore(self.log_start_offset, offset)
            self.update_high_watermark(self.high_watermark)
        except OSError as error:
            raise self.local.take_offline(error) from error
        return removed

    def truncate_fully_and_start_at(self, offset: int) -> list[Path]:
        """Remove all batches and start again with an empty log at `offset`; return the files to unlink later."""
        try:
            removed = self.local.start_at(offset, self.config)
            self.log_start_offset = self.log_end_offset = self.high_watermark = offset
            self.rewrites_count += 1
            self.cleaner_offset, self.left_trash_at = offset, 0
            self.epochs.clear()
            self.producers.restore(offset, offset)
        except OSError as error:
            raise self.local.take_offline(error) from error
        return removed

    def rename_directory(self, path: Path) -> None:
        """Rename the directory within the same disk; open files stay open.

        :raises OSError: If the disk fails.
        """
        self.local.relocate(path)
        self.epochs.relocate(path)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch up to `epoch` and its end offset (OffsetForLeaderEpoch); (-1, -1) if unknown."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def statistics(self) -> dict[str, object]:
        return {
            "directory": str(self.directory),
            "failure": self.local.failure,
            "log_start_offset": self.log_start_offset,
            "high_watermark": self.high_watermark,
            "log_end_offset": self.log_end_offset,
            "recovery_point": self.recovery_point,
            "size_bytes": self.size_bytes,
            "segments_count": len(self.local.segments),
            "producers_count": len(self.producers.states),
            "latest_epoch": self.latest_epoch,
        }
