"""The producers and transactions of one log (KIP-98, KIP-890): their state, its snapshots and aborted transactions."""

from collections import deque

from barnabas.base import disk
from barnabas.base.clock import Clock
from barnabas.log.files import SNAPSHOT_SUFFIX, offset_file
from barnabas.log.local_log import LocalLog
from barnabas.log.producers.producer_recovery import (
    RestoredProducers,
    StateCopy,
    end_transaction,
    restore_producers,
)
from barnabas.log.producers.producer_snapshot import write_snapshot
from barnabas.log.producers.producer_state_manager import ProducerStateManager, VerificationGuard
from barnabas.log.segments.segments import LogSlice
from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.wire.errors import KafkaError
from barnabas.wire.records.batch import BatchHeader
from barnabas.wire.records.control import EndTransactionMarker

#: After how many batches of producers the state is copied, so that a truncation reads no more batches than these.
COPIED_AFTER_BATCHES = 8192
#: Copies of more producers would take too much memory and time.
COPIED_PRODUCERS_MAX = 500


class LogProducers:
    """Methods take the log offline and raise KAFKA_STORAGE_ERROR if the disk fails, unless they say otherwise."""

    def __init__(self, local: LocalLog, restored: RestoredProducers, clock: Clock) -> None:
        self.states: ProducerStateManager = restored.states
        self._local = local
        self._clock = clock
        self._snapshot_offset = restored.snapshot_offset
        self._copies: deque[StateCopy] = deque(maxlen=2)  #: ascending
        self._uncopied_count = 0  #: batches after the last copy
        self.has_unsynced_snapshot = False  #: the newest snapshot is not flushed

    # Appends

    def update(self, records: memoryview, header: BatchHeader) -> None:
        """Update the state with an appended batch, which is the first in `records`."""
        if header.is_control:
            self._add_aborted(end_transaction(self.states, records, header))
        else:
            self.states.record(header)
        self._uncopied_count += 1
        if self._uncopied_count >= COPIED_AFTER_BATCHES:
            self._uncopied_count = 0
            if len(self.states) <= COPIED_PRODUCERS_MAX:
                self._copies.append(StateCopy.of(self.states, header.next_offset))

    def end_transaction(self, marker: EndTransactionMarker, offset: int) -> None:
        """Update the state with an appended transaction marker."""
        self._add_aborted(self.states.end_transaction(marker, offset))

    def _add_aborted(self, aborted: AbortedTransaction | None) -> None:
        if aborted is None:
            return
        try:
            self._local.segments.active.transaction_index.append(aborted)
        except OSError as error:
            raise self._local.take_offline(error) from error

    # Transactions

    def start_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, *, bumps_epochs: bool
    ) -> VerificationGuard | None:
        """Call `ProducerStateManager.start_verification`."""
        return self.states.start_verification(
            producer_id, producer_epoch, sequence, bumps_epochs=bumps_epochs, now_ms=self._clock.wall_ms()
        )

    def last_stable_offset(self, log_start_offset: int, high_watermark: int, log_end_offset: int) -> int:
        unstable = self.states.first_unstable_offset
        if unstable is None:
            return high_watermark
        if unstable < log_start_offset:
            unstable = self._first_batch_offset(log_start_offset, log_end_offset)
        return min(unstable, high_watermark)

    def _first_batch_offset(self, log_start_offset: int, log_end_offset: int) -> int:
        """Return the base offset of the batch that contains the log start offset, or of the first batch after it."""
        try:
            for segment in self._local.segments.since(log_start_offset):
                for _, header in segment.headers(segment.position_of(log_start_offset)):
                    return header.base_offset
        except (OSError, KafkaError):
            return log_start_offset  # a read at this offset raises the same error
        return log_end_offset

    def aborted_transactions(
        self, start_offset: int, log_slice: LogSlice, log_end_offset: int
    ) -> list[AbortedTransaction]:
        """Return the aborted transactions that may have records in `log_slice`, read from `start_offset` on.

        Some may begin after the end of `log_slice`, because its end is only known to the precision of the offset index.

        :raises KafkaError: CORRUPT_MESSAGE for damaged files, KAFKA_STORAGE_ERROR.
        """
        segments = self._local.segments
        index = segments.floor_index(log_slice.segment_base_offset)
        bound = segments[index].end_of_read(log_slice.position, log_slice.size_bytes)
        if bound is None:
            bound = segments.end_offset_of(index, log_end_offset)
        aborted: list[AbortedTransaction] = []
        try:
            for segment in segments.since(log_slice.segment_base_offset):
                if segment.transaction_index.collect(start_offset, bound, aborted):
                    break
        except OSError as error:
            raise self._local.take_offline(error) from error
        return aborted

    @property
    def last_producer_id(self) -> int:
        """The largest producer id in the state; -1 if there is none."""
        return max((entry.producer_id for entry in self.states.entries), default=-1)

    # Snapshots. Methods raise OSError if the disk fails.

    @property
    def snapshot_offset(self) -> int:
        """Offset of the newest snapshot."""
        return self._snapshot_offset

    def take_snapshot(self, offset: int) -> bool:
        """Write a snapshot unless there is one at `offset` or after it; return whether one was written."""
        if offset <= self._snapshot_offset:
            return False
        write_snapshot(self._local.directory, offset, self.states.entries)
        self._snapshot_offset = offset
        return True

    def sync_snapshot(self) -> None:
        """Flush the newest snapshot. Blocks."""
        disk.sync_path(offset_file(self._local.directory, self._snapshot_offset, SNAPSHOT_SUFFIX))

    def restore(self, log_start_offset: int, log_end_offset: int) -> None:
        """Restore the state from snapshots, copies and batches after a truncation."""
        local = self._local
        while self._copies and not log_start_offset < self._copies[-1].offset <= log_end_offset:
            self._copies.pop()
        self._uncopied_count = 0
        self.states, self._snapshot_offset = restore_producers(
            local.directory,
            local.topic_partition,
            local.segments,
            log_start_offset,
            log_end_offset,
            self._copies[-1] if self._copies else None,
        )

    def copy_from(self, source: "LogProducers", log_end_offset: int) -> None:
        """Copy the state from a log that has the same batches, and write its snapshot."""
        write_snapshot(self._local.directory, log_end_offset, source.states.entries)
        self.states, self._snapshot_offset = source.states, log_end_offset
        self._copies.clear()
