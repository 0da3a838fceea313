"""One replica of a partition: append, read and search. `LocalLog` handles the files as a whole."""

from pathlib import Path
from random import Random
from typing import NamedTuple

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.log.leader_epoch_cache import LeaderEpochs, open_epochs
from barnabas.log.log_config import LogConfig
from barnabas.log.producers.producer_recovery import RestoredProducers, restore_producers
from barnabas.log.producers.producer_snapshot import remove_stray_snapshots
from barnabas.log.producers.producer_state_manager import (
    BatchMetadata,
    ProducerStateManager,
    VerificationGuard,
)
from barnabas.log.segments import timestamps
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.segments.segment import Segment
from barnabas.log.segments.segments import FilePart, LogSlice, Segments
from barnabas.log.segments.timestamps import Search, TimestampOffset
from barnabas.log.startup.checkpoints import read_partition_metadata
from barnabas.log.startup.recovery import load_segments
from barnabas.log.transactional_log import TransactionalLog
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
    NO_LEADER_EPOCH,
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


def _register_open_files(segments: Segments, files: OpenFiles) -> OpenFiles:
    """Use `files` from now on to limit the open segments."""
    for segment in segments:
        segment.use_open_files(files)
    return files


class AppendInfo(NamedTuple):
    """The result of an append."""

    first_offset: int
    last_offset: int
    #: -1 unless the topic uses LogAppendTime.
    log_append_time_ms: int
    log_start_offset: int
    #: Whether the batch repeats an earlier one: nothing was appended, and the offsets are those of the first append.
    duplicate: bool
    size_bytes: int


class PartitionLog(TransactionalLog):
    """A log with its offsets, producers and leader epochs. Not thread-safe, except for `flush`."""

    @classmethod
    def create(
        cls,
        directory: Path,
        topic_partition: TopicPartition,
        *,
        topic_id: bytes,
        config: LogConfig,
        clock: Clock,
        random: Random,
        open_files: OpenFiles,
    ) -> "PartitionLog":
        """Create a new, empty log; unlike `open`, it expects no files.

        :raises OSError: When the disk fails or the directory exists.
        """
        directory.mkdir()
        segment = Segment.create(
            directory, 0, open_files, now_ms=clock.wall_ms(), preallocate_bytes=config.preallocate_bytes
        )
        log = cls(
            directory,
            topic_partition,
            topic_id=None,
            config=config,
            clock=clock,
            random=random,
            segments=Segments([segment]),
            epochs=LeaderEpochs(directory),
            producers=RestoredProducers(ProducerStateManager(topic_partition), 0),
            log_start_offset=0,
            log_end_offset=0,
            open_files=open_files,
        )
        log.set_topic_id(topic_id)
        return log

    @classmethod
    def open(
        cls,
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
    ) -> "PartitionLog":
        """Open or create the log in `directory`; after an unclean shutdown recover it. Blocks.

        :raises OSError: When the disk fails.
        :raises MalformedFile: When `partition.metadata` is damaged.
        """
        directory.mkdir(exist_ok=True)
        epochs = open_epochs(directory)
        if epochs is None:
            epochs, clean_shutdown, recovery_point = LeaderEpochs(directory), False, 0
        segments, end_offset, _ = load_segments(
            directory,
            topic_partition,
            config,
            epochs,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            clean_shutdown=clean_shutdown,
            now_ms=clock.wall_ms(),
        )
        start_offset = max(log_start_offset, segments[0].base_offset)
        epochs.truncate_from_end(end_offset)
        epochs.truncate_from_start(start_offset)
        remove_stray_snapshots(directory, [segment.base_offset for segment in segments])
        producers = restore_producers(directory, topic_partition, segments, start_offset, end_offset)
        files = _register_open_files(segments, OpenFiles() if open_files is None else open_files)
        log = cls(
            directory,
            topic_partition,
            topic_id=read_partition_metadata(directory),
            config=config,
            clock=clock,
            random=random or Random(),
            segments=segments,
            epochs=epochs,
            producers=producers,
            log_start_offset=start_offset,
            log_end_offset=end_offset,
            open_files=files,
        )
        log.recovery_point = end_offset if clean_shutdown else min(recovery_point, end_offset)
        log.update_high_watermark(high_watermark)
        log._unsynced_directory = not clean_shutdown
        if topic_id is not None and log.topic_id is None:
            log.set_topic_id(topic_id)
        return log

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
        if self.failure is not None:
            raise self._offline()
        config, now_ms = self.config, self._clock.wall_ms()
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
            duplicate = self._producers.check(
                BatchHeader(*header),
                sequences=origin is AppendOrigin.CLIENT,
                verification=verification,
                verifies=config.verifies_transactions,
            )
            if duplicate is not None:
                return self._duplicate_info(duplicate)
        base_offset = self.log_end_offset
        last_offset = base_offset + last_offset_delta
        assign(records, base_offset, batch_length, leader_epoch)
        self._write(records, base_offset, last_offset, leader_epoch, max_timestamp, now_ms)
        if producer_id >= 0:
            self._update_producer(records, placed(header, base_offset, leader_epoch))
        append_time_ms = max_timestamp if config.stamps_append_time else NO_TIMESTAMP
        return AppendInfo(base_offset, last_offset, append_time_ms, self.log_start_offset, False, size_bytes)

    def validate_inline(self, records: memoryview) -> ValidatedBatch | None:
        """Call `validation.validate_inline` with the topic's current configs."""
        return validate_inline(records, self.config, self._clock.wall_ms())

    def validate(self, records: memoryview) -> ValidatedBatch:
        """Call `validation.validate` with the topic's current configs; may run in any thread."""
        return validate(records, self.config, self._clock.wall_ms())

    def append_end_marker(
        self, marker: EndTransactionMarker, leader_epoch: int, transaction_version: int = 0
    ) -> AppendInfo:
        """Append a transaction marker, whether or not the transaction has records here.

        :raises KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR.
        """
        if self.failure is not None:
            raise self._offline()
        self._producers.check_end_marker(marker, transaction_version)
        config, now_ms, offset = self.config, self._clock.wall_ms(), self.log_end_offset
        if config.stamps_append_time:
            marker = marker._replace(timestamp_ms=now_ms)
        records = memoryview(encode_end_marker(marker))
        if config.stamps_append_time:
            stamp_append_time(records, 0, read_header(records), now_ms)
        assign(records, offset, len(records) - BATCH_OVERHEAD_BYTES, leader_epoch)
        self._write(records, offset, offset, leader_epoch, marker.timestamp_ms, now_ms)
        self._add_aborted(self._producers.end_transaction(marker, offset))
        append_time_ms = now_ms if config.stamps_append_time else NO_TIMESTAMP
        return AppendInfo(offset, offset, append_time_ms, self.log_start_offset, False, len(records))

    def append_as_follower(self, records: memoryview) -> AppendInfo:
        """Append batches from the leader, with the offsets and leader epochs that it assigned.

        :raises KafkaError: CORRUPT_MESSAGE, OFFSET_OUT_OF_RANGE if a batch is below the log end offset,
            KAFKA_STORAGE_ERROR. Batches before the bad one are appended.
        """
        if self.failure is not None:
            raise self._offline()
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
                self._clock.wall_ms(),
            )
            if header.producer_id >= 0:
                self._update_producer(records[position:], header)
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
        segment = self._segments.active
        config = self.config
        try:
            if leader_epoch != self.epochs.latest and leader_epoch >= 0:
                self.epochs.assign(leader_epoch, base_offset)
            if segment.should_roll(len(records), last_offset, max_timestamp, now_ms, config, self._jitter_ms):
                segment = self._roll(base_offset)
            segment.append(records, last_offset, max_timestamp, config)
        except OSError as error:
            raise self.take_offline(error) from error
        self.log_end_offset = last_offset + 1

    def _too_large_for_segment(self, size_bytes: int) -> KafkaError:
        message = f"batch of {size_bytes} bytes: segment.bytes allows {self.config.segment_bytes}"
        return KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, message)

    def _duplicate_info(self, batch: BatchMetadata) -> AppendInfo:
        return AppendInfo(
            batch.first_offset, batch.last_offset, batch.timestamp_ms, self.log_start_offset, True, 0
        )

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
        if self.failure is not None:
            raise self._offline()
        if not self.log_start_offset <= start_offset <= self.log_end_offset:
            raise self._out_of_range(start_offset)
        if start_offset >= upper_bound_offset:
            return LogSlice(_EMPTY, self._segments.active.base_offset, 0)
        try:
            segment, position, size_bytes = self._find(
                start_offset, max_bytes, upper_bound_offset, min_one_batch
            )
            data = segment.view(position, size_bytes, may_copy=may_copy) if size_bytes > 0 else _EMPTY
            return LogSlice(data, segment.base_offset, position)
        except OSError as error:
            raise self.take_offline(error) from error

    def locate(self, start_offset: int, max_bytes: int) -> FilePart:
        """Return the file range of the batches from `start_offset` on, in one segment, so that a thread can read them.

        It is cut at `max_bytes`, even inside a batch, but always contains the first batch. Empty at the log end offset.

        :raises KafkaError: KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE for damaged files.
        """
        if self.failure is not None:
            raise self._offline()
        try:
            segment, position, size_bytes = self._find(start_offset, max_bytes, self.log_end_offset, True)
        except OSError as error:
            raise self.take_offline(error) from error
        is_last = segment is self._segments.active and position + size_bytes == segment.size_bytes
        return FilePart(segment.path, position, size_bytes, is_last)

    def _find(
        self, start_offset: int, max_bytes: int, upper_bound_offset: int, whole: bool
    ) -> tuple[Segment, int, int]:
        """Return where a read begins and how much it returns: segment, position, size in bytes."""
        segments = self._segments
        index = segments.floor_index(start_offset)
        segment, position = segments[index], segments[index].position_of(start_offset)
        while position == segment.size_bytes and index + 1 < len(segments):
            index, position = index + 1, 0
            segment = segments[index]
        if upper_bound_offset >= segments.end_offset_of(index, self.log_end_offset):
            end = segment.size_bytes
        else:
            end = segment.position_of(upper_bound_offset)
        size_bytes = end - position
        if size_bytes > max_bytes:
            first_bytes = segment.batch_size_bytes(position) if whole else 0
            size_bytes = min(size_bytes, max(max_bytes, first_bytes))
        return segment, position, size_bytes

    def _out_of_range(self, offset: int) -> KafkaError:
        message = (
            f"offset {offset} of {self.topic_partition} is outside the log's range "
            f"[{self.log_start_offset}, {self.log_end_offset}]"
        )
        return KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, message)

    # Looking up

    def search_timestamp(self, timestamp_ms: int) -> Search:
        """Search the first record at or after `timestamp_ms`; do not continue the search after the log is closed.

        :raises KafkaError: KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE for damaged files.
        """
        return self._guarded(
            timestamps.first_at_or_after(self._segments, timestamp_ms, self.log_start_offset)
        )

    def search_max_timestamp(self) -> Search:
        """Search the first record with the largest timestamp, including deleted records that are still in a segment.

        The result is None for an empty log.

        :raises KafkaError: As `search_timestamp`.
        """
        return self._guarded(timestamps.of_max_timestamp(self._segments))

    def _guarded(self, search: Search) -> Search:
        if self.failure is not None:
            raise self._offline()
        try:
            return (yield from search)
        except OSError as error:
            raise self.take_offline(error) from error

    def earliest_offset(self) -> TimestampOffset:
        """Return the log start offset, with the epoch of the leader that wrote there."""
        epoch = self.epochs.epoch_at(self.log_start_offset)
        return TimestampOffset(
            NO_TIMESTAMP, self.log_start_offset, NO_LEADER_EPOCH if epoch is None else epoch
        )

    def latest_offset(self) -> TimestampOffset:
        """Return the log end offset, with the latest epoch."""
        epoch = self.epochs.latest
        return TimestampOffset(NO_TIMESTAMP, self.log_end_offset, NO_LEADER_EPOCH if epoch is None else epoch)

    @property
    def latest_epoch(self) -> int | None:
        """The epoch of the last leader that wrote, or None for an empty log."""
        return self.epochs.latest

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch up to `epoch` and its end offset (OffsetForLeaderEpoch); (-1, -1) if unknown."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def statistics(self) -> dict[str, object]:
        """Return the state of the log in numbers, for statistics and metrics."""
        return {
            "directory": str(self.directory),
            "failure": self.failure,
            "log_start_offset": self.log_start_offset,
            "high_watermark": self.high_watermark,
            "log_end_offset": self.log_end_offset,
            "recovery_point": self.recovery_point,
            "size_bytes": self.size_bytes,
            "segments_count": len(self._segments),
            "producers_count": len(self._producers),
            "latest_epoch": self.latest_epoch,
        }
