"""The transactions of a log: last stable offset, aborted transactions, verification of new ones (KIP-98, KIP-890)."""

from barnabas.log.local_log import LocalLog
from barnabas.log.producers.producer_recovery import end_transaction
from barnabas.log.producers.producer_state_manager import ActiveProducer, VerificationGuard
from barnabas.log.segments.segments import LogSlice
from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.wire.errors import KafkaError
from barnabas.wire.records.batch import BatchHeader


class TransactionalLog(LocalLog):
    """A log with its producers and transactions."""

    @property
    def last_stable_offset(self) -> int:
        """Every transaction below this offset is complete: the limit for `read_committed`.

        If the log start offset is within an open transaction and within a batch, this is below it, as in Kafka.
        """
        unstable = self._producers.first_unstable_offset
        if unstable is None:
            return self.high_watermark
        if unstable < self.log_start_offset:
            unstable = self._first_batch_offset()
        return min(unstable, self.high_watermark)

    def _first_batch_offset(self) -> int:
        """Return the base offset of the batch that contains the log start offset, or of the first batch after it."""
        start_offset = self.log_start_offset
        try:
            for segment in self._segments.since(start_offset):
                for _, header in segment.headers(segment.position_of(start_offset)):
                    return header.base_offset
        except (OSError, KafkaError):
            return start_offset  # a read at this offset raises the same error
        return self.log_end_offset

    def start_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, *, bumps_epochs: bool
    ) -> VerificationGuard | None:
        """Return the guard to append a transaction's first batch with, once its coordinator has confirmed it.

        None for a transaction that has records here already: it needs no verification.

        :raises KafkaError: INVALID_PRODUCER_EPOCH.
        """
        return self._producers.start_verification(
            producer_id, producer_epoch, sequence, bumps_epochs=bumps_epochs, now_ms=self._clock.wall_ms()
        )

    def aborted_transactions(self, start_offset: int, found: LogSlice) -> list[AbortedTransaction]:
        """Return the aborted transactions that may have records in `found`, read from `start_offset` on.

        Some may begin after the end of `found`, because its end is only known to the precision of the offset index.

        :raises KafkaError: CORRUPT_MESSAGE for damaged files, KAFKA_STORAGE_ERROR.
        """
        segments = self._segments
        index = segments.floor_index(found.segment_base_offset)
        bound = segments[index].end_of_read(found.position, found.size_bytes)
        if bound is None:
            bound = segments.end_offset_of(index, self.log_end_offset)
        aborted: list[AbortedTransaction] = []
        try:
            for segment in segments.since(found.segment_base_offset):
                if segment.transaction_index.collect(start_offset, bound, aborted):
                    break
        except OSError as error:
            raise self.take_offline(error) from error
        return aborted

    def size_between(self, start_offset: int, end_offset: int) -> int | None:
        """Return the size of the batches between two offsets; None if these are in different segments.

        :raises KafkaError: CORRUPT_MESSAGE for damaged files, KAFKA_STORAGE_ERROR.
        """
        segments = self._segments
        index = segments.floor_index(start_offset)
        if segments.floor_index(end_offset) != index:
            return None
        try:
            return segments[index].position_of(end_offset) - segments[index].position_of(start_offset)
        except OSError as error:
            raise self.take_offline(error) from error

    def _update_producer(self, records: memoryview, header: BatchHeader) -> None:
        """Update the producer state with an appended batch, which is the first in `records`.

        :raises KafkaError: KAFKA_STORAGE_ERROR.
        """
        if header.is_control:
            self._add_aborted(end_transaction(self._producers, records, header))
        else:
            self._producers.record(header)

    def _add_aborted(self, aborted: AbortedTransaction | None) -> None:
        """Add the transaction that the last marker aborted, if any, to the transaction index.

        :raises KafkaError: KAFKA_STORAGE_ERROR.
        """
        if aborted is None:
            return
        try:
            self._segments.active.transaction_index.append(aborted)
        except OSError as error:
            raise self.take_offline(error) from error

    @property
    def active_producers(self) -> list[ActiveProducer]:
        """The producers in the producer state (DescribeProducers)."""
        return self._producers.active

    @property
    def producers_count(self) -> int:
        """Number of producers in the producer state."""
        return len(self._producers)

    def evict_producers(self, kept_count: int) -> None:
        """Remove the idle producers with the oldest records until `kept_count` are left."""
        self._producers.evict(kept_count)

    def remove_expired_producers(self, now_ms: int, expiration_ms: int) -> None:
        """Remove producers that were idle for `producer.id.expiration.ms`."""
        self._producers.remove_expired(now_ms, expiration_ms)
