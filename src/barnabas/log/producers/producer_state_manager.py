"""State of the idempotent and transactional producers of one partition (KIP-98)."""

import heapq
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import NO_SEQUENCE, NO_TIMESTAMP, SEQUENCE_LIMIT, BatchHeader
from barnabas.wire.records.control import EndTransactionMarker

#: A producer has at most this many requests in flight, so a retry can only repeat one of them.
BATCHES_TO_RETAIN = 5
#: Producers per partition; beyond, those with the oldest records and no open transaction are removed.
#: A removed producer may start with any sequence, as after `producer.id.expiration.ms`.
PRODUCER_IDS_MAX = 10_000
#: Number of producers removed at a time, because finding them takes a scan of all.
EVICTION_COUNT = 500
NO_EPOCH = -1
NO_OFFSET = -1
EPOCH_MAX = (1 << 15) - 1
#: First transaction version whose markers increment the producer epoch (KIP-890).
BUMPING_VERSION = 2


class BatchMetadata(NamedTuple):
    """What is needed to recognize a duplicate of one appended batch."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        """Sequence of the first record; wraps below 0."""
        return (self.last_sequence - self.offset_delta) % SEQUENCE_LIMIT

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ActiveProducer(NamedTuple):
    """A producer as DescribeProducers returns it; -1 means none."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    current_txn_start_offset: int


class ProducerStateEntry:
    """The state of one producer id."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_start_offset",
        "last_offset",
        "last_timestamp_ms",
        "producer_epoch",
        "producer_id",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = NO_EPOCH
        self.coordinator_epoch = NO_EPOCH
        self.last_timestamp_ms = NO_TIMESTAMP
        self.current_txn_start_offset = NO_OFFSET
        self.last_offset = NO_OFFSET  #: offset of its last record or marker
        #: Recent batches of `producer_epoch`, ordered by sequence.
        self.batches: deque[BatchMetadata] = deque(maxlen=BATCHES_TO_RETAIN)

    def copy(self) -> "ProducerStateEntry":
        copied = ProducerStateEntry(self.producer_id)
        copied.producer_epoch, copied.coordinator_epoch = self.producer_epoch, self.coordinator_epoch
        copied.last_timestamp_ms, copied.last_offset = self.last_timestamp_ms, self.last_offset
        copied.current_txn_start_offset = self.current_txn_start_offset
        copied.batches.extend(self.batches)
        return copied

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; -1 if the epoch has none yet."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def move_to_epoch(self, producer_epoch: int) -> None:
        """Set the epoch; a new epoch starts without batches."""
        if producer_epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch

    def find_duplicate(self, header: BatchHeader) -> BatchMetadata | None:
        """Return the remembered batch with exactly the sequences of `header`."""
        if header.producer_epoch != self.producer_epoch:
            return None
        for batch in self.batches:
            if batch.last_sequence == header.last_sequence and batch.first_sequence == header.base_sequence:
                return batch
        return None

    def check_sequence(self, header: BatchHeader) -> None:
        """Reject a gap in sequences; if no epoch is known, any sequence is valid.

        :raises KafkaError: OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        if self.producer_epoch == NO_EPOCH:
            return
        if header.producer_epoch != self.producer_epoch:
            if header.base_sequence != 0:
                expected_text = f"the new epoch {header.producer_epoch} must start with sequence 0"
                raise self._out_of_order(header, expected_text)
            return
        expected = (self.last_sequence + 1) % SEQUENCE_LIMIT
        if header.base_sequence != expected:
            raise self._out_of_order(header, f"{expected} must follow {self.last_sequence}")

    def _out_of_order(self, header: BatchHeader, expected_text: str) -> KafkaError:
        message = f"sequence {header.base_sequence} of producer {self.producer_id}: {expected_text}"
        return KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, message)


class VerificationGuard:
    """A transaction's first batch in a partition, while its coordinator is verifying the transaction (KIP-890)."""

    __slots__ = ("bumps_epochs", "lowest_sequence", "producer_epoch", "started_ms")

    def __init__(
        self, producer_epoch: int, lowest_sequence: int, bumps_epochs: bool, started_ms: int
    ) -> None:
        self.producer_epoch = producer_epoch
        #: The smallest sequence to verify: it must be appended first.
        self.lowest_sequence = lowest_sequence
        self.bumps_epochs = bumps_epochs
        self.started_ms = started_ms

    def update_lowest_sequence(self, producer_epoch: int, sequence: int) -> None:
        """Account for another batch of the same producer to verify."""
        if producer_epoch > self.producer_epoch:
            self.producer_epoch, self.lowest_sequence = producer_epoch, sequence
        elif producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


class ProducerStateManager:
    """All producers of one partition: checks their batches and remembers what was appended."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        self._topic_partition = topic_partition
        self._entries: dict[int, ProducerStateEntry] = {}
        #: First offset of each open transaction, by producer id; ascending.
        self._open_transactions: dict[int, int] = {}
        #: First offset -> marker offset, of transactions whose marker is not below the high watermark yet.
        self._unreplicated: dict[int, int] = {}
        self._verifications: dict[int, VerificationGuard] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> Iterable[ProducerStateEntry]:
        """All producers, for a snapshot."""
        return self._entries.values()

    @property
    def active(self) -> list[ActiveProducer]:
        """All producers, for DescribeProducers."""
        return [
            ActiveProducer(
                entry.producer_id,
                entry.producer_epoch,
                entry.last_sequence,
                entry.last_timestamp_ms,
                entry.coordinator_epoch,
                entry.current_txn_start_offset,
            )
            for entry in self._entries.values()
        ]

    @property
    def first_undecided_offset(self) -> int | None:
        """First offset of the earliest open transaction."""
        return next(iter(self._open_transactions.values()), None)

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the earliest transaction that is open, or whose marker is not below the high watermark."""
        if not self._open_transactions and not self._unreplicated:
            return None
        undecided = self.first_undecided_offset
        if not self._unreplicated:
            return undecided
        unreplicated = min(self._unreplicated)
        return unreplicated if undecided is None else min(undecided, unreplicated)

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """Remove the transactions whose markers are below `high_watermark`: every in-sync replica has them."""
        if self._unreplicated:
            self._unreplicated = {
                first: last for first, last in self._unreplicated.items() if last >= high_watermark
            }

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a transaction of exactly this epoch has records here."""
        entry = self._entries.get(producer_id)
        return (
            entry is not None
            and entry.current_txn_start_offset != NO_OFFSET
            and entry.producer_epoch == producer_epoch
        )

    def start_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, *, bumps_epochs: bool, now_ms: int
    ) -> VerificationGuard | None:
        """Return the guard that the transaction's first batch needs, once its coordinator has verified it.

        None if the transaction has records here already. `bumps_epochs`: transactions of version 2 (KIP-890).

        :raises KafkaError: INVALID_PRODUCER_EPOCH.
        """
        entry = self._entries.get(producer_id)
        if entry is not None and producer_epoch < entry.producer_epoch:
            raise self._fenced(producer_id, producer_epoch, entry)
        if self.has_open_transaction(producer_id, producer_epoch):
            return None
        verification = self._verifications.get(producer_id)
        if verification is None:
            if len(self._verifications) >= PRODUCER_IDS_MAX:
                del self._verifications[next(iter(self._verifications))]
            verification = VerificationGuard(producer_epoch, sequence, bumps_epochs, now_ms)
            self._verifications[producer_id] = verification
        verification.update_lowest_sequence(producer_epoch, sequence)
        return verification

    def check(
        self,
        header: BatchHeader,
        *,
        sequences: bool,
        verification: VerificationGuard | None = None,
        verifies: bool = False,
    ) -> BatchMetadata | None:
        """Check whether the batch may be appended; returns None, or the earlier batch that it duplicates.

        An unknown producer may start with any sequence, because its state may have expired. Without `sequences`
        only epochs are checked, as for batches of a coordinator. With `verifies` a transaction's first batch must
        come with the guard from `start_verification`.

        :raises KafkaError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE.
        """
        entry = self._entries.get(header.producer_id)
        duplicate = entry.find_duplicate(header) if sequences and entry is not None else None
        if duplicate is not None:
            return duplicate
        if entry is not None and header.producer_epoch < entry.producer_epoch:
            raise self._fenced(header.producer_id, header.producer_epoch, entry)
        if header.is_transactional and verifies:
            self._check_verification(header, verification)
        if sequences and self._verifications:
            self._check_first_sequence(header, entry)
        if entry is None:
            return None
        if sequences:
            entry.check_sequence(header)
        if entry.current_txn_start_offset != NO_OFFSET and not header.is_transactional:
            message = (
                f"producer {header.producer_id} has a transaction open in {self._topic_partition} "
                f"since offset {entry.current_txn_start_offset}: only transactional records are allowed"
            )
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, message)
        return None

    def _check_verification(self, header: BatchHeader, verification: VerificationGuard | None) -> None:
        if self.has_open_transaction(header.producer_id, header.producer_epoch):
            return
        known = self._verifications.get(header.producer_id)
        if known is None or known is not verification:
            message = (
                f"{self._topic_partition} is not in a verified transaction of producer {header.producer_id}"
            )
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, message)

    def _check_first_sequence(self, header: BatchHeader, entry: ProducerStateEntry | None) -> None:
        """While a producer's first batch is being verified, reject later batches."""
        verification = self._verifications.get(header.producer_id)
        if verification is None:
            return
        is_unknown = entry is None or not entry.batches
        lowest = 0 if verification.bumps_epochs and is_unknown else verification.lowest_sequence
        if header.base_sequence > lowest:
            message = (
                f"sequence {header.base_sequence} of producer {header.producer_id}: {lowest} must be first"
            )
            raise KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, message)

    def _fenced(self, producer_id: int, producer_epoch: int, entry: ProducerStateEntry) -> KafkaError:
        message = (
            f"epoch {producer_epoch} of producer {producer_id} in {self._topic_partition}: "
            f"it is older than epoch {entry.producer_epoch}"
        )
        return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, message)

    def check_transaction_marker(self, marker: EndTransactionMarker, transaction_version: int) -> None:
        """Check whether the marker may be appended.

        A marker of transaction version 2 has the epoch after that of the records (KIP-890), unless it is a retry.

        :raises KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.
        """
        entry = self._entries.get(marker.producer_id)
        if entry is None:
            return
        epoch = marker.producer_epoch
        if epoch < entry.producer_epoch:
            raise self._fenced(marker.producer_id, epoch, entry)
        is_open = entry.current_txn_start_offset != NO_OFFSET
        is_bumped = epoch > entry.producer_epoch or epoch == EPOCH_MAX
        if transaction_version >= BUMPING_VERSION and is_open and not is_bumped:
            message = (
                f"epoch {epoch} of a marker of producer {marker.producer_id} in {self._topic_partition}: "
                f"it is that of the transaction's records, and must be the next one"
            )
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, message)
        if marker.coordinator_epoch < entry.coordinator_epoch:
            message = (
                f"coordinator epoch {marker.coordinator_epoch} of a marker of producer {marker.producer_id} in "
                f"{self._topic_partition}: it is older than epoch {entry.coordinator_epoch}"
            )
            raise KafkaError(ErrorCode.TRANSACTION_COORDINATOR_FENCED, message)

    def record(self, header: BatchHeader) -> None:
        """Update the state with an appended data batch, whose header has its final offsets and timestamps."""
        entry = self._entry(header.producer_id)
        entry.move_to_epoch(header.producer_epoch)
        entry.batches.append(
            BatchMetadata(
                header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp
            )
        )
        entry.last_timestamp_ms = header.max_timestamp
        entry.last_offset = header.last_offset
        if header.is_transactional and entry.current_txn_start_offset == NO_OFFSET:
            entry.current_txn_start_offset = header.base_offset
            self._open_transactions[header.producer_id] = header.base_offset
        if header.is_transactional:
            self._verifications.pop(header.producer_id, None)

    def end_transaction(self, marker: EndTransactionMarker, offset: int) -> AbortedTransaction | None:
        """Update the state with the marker appended at `offset`; returns the transaction it aborted, if any."""
        entry = self._entry(marker.producer_id)
        entry.move_to_epoch(marker.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.current_txn_start_offset = NO_OFFSET
        entry.last_timestamp_ms = marker.timestamp_ms
        entry.last_offset = offset
        self._end_verification(marker)
        first_offset = self._open_transactions.pop(marker.producer_id, None)
        if first_offset is None:
            return None
        self._unreplicated[first_offset] = offset
        if marker.commit:
            return None
        undecided = self.first_undecided_offset
        stable_offset = offset + 1 if undecided is None else undecided
        return AbortedTransaction(marker.producer_id, first_offset, offset, stable_offset)

    def _end_verification(self, marker: EndTransactionMarker) -> None:
        """Remove the verification, except that of the next transaction: a version 2 marker already has its epoch."""
        verification = self._verifications.get(marker.producer_id)
        if verification is None:
            return
        if not verification.bumps_epochs or verification.producer_epoch != marker.producer_epoch:
            del self._verifications[marker.producer_id]

    def _entry(self, producer_id: int) -> ProducerStateEntry:
        entry = self._entries.get(producer_id)
        if entry is None:
            if len(self._entries) >= PRODUCER_IDS_MAX:
                self.evict(PRODUCER_IDS_MAX - EVICTION_COUNT)
            entry = self._entries[producer_id] = ProducerStateEntry(producer_id)
        return entry

    def evict(self, kept_count: int) -> None:
        """Remove the producers with the oldest records until `kept_count` are left.

        Producers with a transaction that is open or being verified stay.
        """
        idle = (
            entry
            for producer_id, entry in self._entries.items()
            if entry.current_txn_start_offset == NO_OFFSET and producer_id not in self._verifications
        )
        excess_count = len(self._entries) - kept_count
        for entry in heapq.nsmallest(excess_count, idle, key=lambda entry: entry.last_offset):
            del self._entries[entry.producer_id]

    def replace(self, entries: Iterable[ProducerStateEntry]) -> None:
        """Replace all state by that of a snapshot."""
        self._entries = {entry.producer_id: entry for entry in entries}
        open_entries = [
            entry for entry in self._entries.values() if entry.current_txn_start_offset != NO_OFFSET
        ]
        open_entries.sort(key=lambda entry: entry.current_txn_start_offset)
        self._open_transactions = {
            entry.producer_id: entry.current_txn_start_offset for entry in open_entries
        }
        self._unreplicated.clear()

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Remove producers without an open transaction that were idle for `producer.id.expiration.ms`."""
        self._entries = {
            producer_id: entry
            for producer_id, entry in self._entries.items()
            if entry.current_txn_start_offset != NO_OFFSET or now_ms - entry.last_timestamp_ms < expiration_ms
        }
        self._verifications = {
            producer_id: verification
            for producer_id, verification in self._verifications.items()
            if now_ms - verification.started_ms < expiration_ms
        }
