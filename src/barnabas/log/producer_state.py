"""What a partition remembers of idempotent and transactional producers (KIP-98)."""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import NO_SEQUENCE, NO_TIMESTAMP, SEQUENCE_LIMIT, BatchHeader

#: A producer has at most this many requests in flight, so a retry can only be one of them.
BATCHES_TO_RETAIN = 5
NO_EPOCH = -1
NO_OFFSET = -1


class ProducedBatch(NamedTuple):
    """One appended batch of a producer, as far as recognising it again needs."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        """Sequence of the first record, wrapping below 0."""
        return (self.last_sequence - self.offset_delta) % SEQUENCE_LIMIT

    @property
    def first_offset(self) -> int:
        """Offset of the first record."""
        return self.last_offset - self.offset_delta


class ActiveProducer(NamedTuple):
    """A producer as DescribeProducers shows it; -1 stands for what there is not."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    current_txn_start_offset: int


class ProducerEntry:
    """The state of one producer id."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_start_offset",
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
        #: All of `producer_epoch`, in the order of their sequences.
        self.batches: deque[ProducedBatch] = deque(maxlen=BATCHES_TO_RETAIN)

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, -1 when the epoch has none yet."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def move_to_epoch(self, producer_epoch: int) -> None:
        """Sequences start again in a new epoch."""
        if producer_epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch

    def find_duplicate(self, header: BatchHeader) -> ProducedBatch | None:
        """The remembered batch with the very sequences of `header`."""
        if header.producer_epoch != self.producer_epoch:
            return None
        for batch in self.batches:
            if batch.last_sequence == header.last_sequence and batch.first_sequence == header.base_sequence:
                return batch
        return None

    def check_sequence(self, header: BatchHeader) -> None:
        """Refuse a gap; where no epoch is known, any sequence may come.

        :raises KafkaError: OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        if self.producer_epoch == NO_EPOCH:
            return
        if header.producer_epoch != self.producer_epoch:
            if header.base_sequence != 0:
                what = f"a new epoch, {header.producer_epoch}, starts with sequence 0"
                raise self._out_of_order(header, what)
            return
        expected = (self.last_sequence + 1) % SEQUENCE_LIMIT
        if header.base_sequence != expected:
            raise self._out_of_order(header, f"{expected} follows {self.last_sequence}")

    def _out_of_order(self, header: BatchHeader, expected: str) -> KafkaError:
        message = f"sequence {header.base_sequence} of producer {self.producer_id}: {expected}"
        return KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, message)


class ProducerStates:
    """All producers of one partition; checks what they send, remembers what was appended."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        self._topic_partition = topic_partition
        self._entries: dict[int, ProducerEntry] = {}
        #: First offset of the open transaction, by producer id.
        self._open_transactions: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> Iterable[ProducerEntry]:
        """Every producer, for a snapshot."""
        return self._entries.values()

    @property
    def active(self) -> list[ActiveProducer]:
        """Every producer, for people."""
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
        """Where the earliest open transaction began."""
        return min(self._open_transactions.values(), default=None)

    def check(self, header: BatchHeader, *, sequences: bool) -> ProducedBatch | None:
        """Whether the batch may be appended: None, or the batch that it repeats.

        An unknown producer may start with any sequence: its state may have expired. With `sequences`
        off only epochs are checked, as for what a coordinator writes.

        :raises KafkaError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE.
        """
        entry = self._entries.get(header.producer_id)
        if entry is None:
            return None
        duplicate = entry.find_duplicate(header) if sequences else None
        if duplicate is not None:
            return duplicate
        if header.producer_epoch < entry.producer_epoch:
            message = (
                f"epoch {header.producer_epoch} of producer {header.producer_id} in {self._topic_partition}: "
                f"epoch {entry.producer_epoch} was seen already"
            )
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, message)
        if sequences:
            entry.check_sequence(header)
        if entry.current_txn_start_offset != NO_OFFSET and not header.is_transactional:
            message = (
                f"producer {header.producer_id} has a transaction open in {self._topic_partition} "
                f"since offset {entry.current_txn_start_offset}: only transactional records are expected"
            )
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, message)
        return None

    def record(self, header: BatchHeader) -> None:
        """Remember an appended batch of data; the header has its final offsets and timestamps."""
        entry = self._entry(header.producer_id)
        entry.move_to_epoch(header.producer_epoch)
        entry.batches.append(
            ProducedBatch(
                header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp
            )
        )
        entry.last_timestamp_ms = header.max_timestamp
        if header.is_transactional and entry.current_txn_start_offset == NO_OFFSET:
            entry.current_txn_start_offset = header.base_offset
            self._open_transactions[header.producer_id] = header.base_offset

    def end_transaction(self, header: BatchHeader, coordinator_epoch: int, timestamp_ms: int) -> None:
        """Remember an appended commit or abort marker."""
        entry = self._entry(header.producer_id)
        entry.move_to_epoch(header.producer_epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.current_txn_start_offset = NO_OFFSET
        entry.last_timestamp_ms = timestamp_ms
        self._open_transactions.pop(header.producer_id, None)

    def _entry(self, producer_id: int) -> ProducerEntry:
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerEntry(producer_id)
        return entry

    def replace(self, entries: Iterable[ProducerEntry]) -> None:
        """Forget everything and start from a snapshot."""
        self._entries = {entry.producer_id: entry for entry in entries}
        self._open_transactions = {
            entry.producer_id: entry.current_txn_start_offset
            for entry in self._entries.values()
            if entry.current_txn_start_offset != NO_OFFSET
        }

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers without an open transaction that were idle for `producer.id.expiration.ms`."""
        self._entries = {
            producer_id: entry
            for producer_id, entry in self._entries.items()
            if entry.current_txn_start_offset != NO_OFFSET or now_ms - entry.last_timestamp_ms < expiration_ms
        }
