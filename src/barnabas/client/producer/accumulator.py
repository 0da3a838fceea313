"""Queues records on their way to a broker, as batches, in order per partition, one in flight at a time. No IO."""

from asyncio import Future
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.base.ids import ProducerIdAndEpoch, TopicPartition
from barnabas.wire.records.batch import BATCH_HEADER_BYTES
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record, encode_batch

#: Upper bound of the size of a record's lengths and deltas.
_RECORD_OVERHEAD_BYTES = 21
_RECORD_HEADER_OVERHEAD_BYTES = 10


class RecordMetadata(NamedTuple):
    """The partition and offset of a stored record; `offset` is -1 with acks=0, or if the broker does not know it."""

    tp: TopicPartition
    offset: int
    timestamp_ms: int


Waiter = Future[RecordMetadata]


@dataclass(eq=False)
class Batch:
    """Records for one partition. A sequence, once assigned, stays for every attempt to send the batch, because an
    earlier attempt may have stored it.
    """

    tp: TopicPartition
    created_ms: int
    records: list[Record] = field(default_factory=list)
    waiters: list[Waiter] = field(default_factory=list)
    size_bytes: int = BATCH_HEADER_BYTES
    attempts: int = 0  #: how often the batch was sent
    failures: int = 0  #: how often it could not be sent or was refused
    retry_at_ms: int = 0
    in_flight: bool = False
    closed: bool = False  #: closed for more records, and sent without lingering
    identity: ProducerIdAndEpoch | None = None
    base_sequence: int = -1
    encoded: bytearray = field(default_factory=bytearray)
    #: Records that the broker refused, with their errors; they fail when the batch is finished, so that a flush covers
    #: them.
    refused: list[tuple[Waiter, Exception]] = field(default_factory=list)

    def add(self, record: Record, waiter: Waiter) -> None:
        """Append a record and the future of its delivery."""
        self.records.append(record)
        self.waiters.append(waiter)
        self.size_bytes += record_size_bytes(record)

    def encode(self, compression: Compression) -> None:
        """Encode the batch once, so that every attempt sends the same."""
        if self.encoded:
            return
        identity = self.identity or ProducerIdAndEpoch(-1, -1)
        self.encoded = encode_batch(
            self.records,
            compression=compression,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=self.base_sequence,
        )

    def unstamp(self) -> None:
        """Take back the sequence of a batch that is certainly not stored; it is sent as if for the first time."""
        self.identity, self.base_sequence, self.attempts = None, -1, 0
        self.encoded = bytearray()

    def halves(self) -> tuple["Batch", "Batch"]:
        """Split the batch in two; sequences are assigned when the halves are sent."""
        assert len(self.records) > 1
        middle = len(self.records) // 2
        first, second = Batch(self.tp, self.created_ms), Batch(self.tp, self.created_ms)
        for index, (record, waiter) in enumerate(zip(self.records, self.waiters, strict=True)):
            (first if index < middle else second).add(record, waiter)
        second.refused = self.refused  # the refused records fail last
        return first, second

    def without(self, errors: Mapping[int, Exception]) -> "Batch":
        """Return a batch of the same records without the refused ones (by index), with no sequence yet."""
        rest = Batch(self.tp, self.created_ms, refused=self.refused[:])
        for index, (record, waiter) in enumerate(zip(self.records, self.waiters, strict=True)):
            if index in errors:
                rest.refused.append((waiter, errors[index]))
            else:
                rest.add(record, waiter)
        return rest


def record_size_bytes(record: Record) -> int:
    """Lower bound of the record's size in a batch before compression."""
    size_bytes = _RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size_bytes += _RECORD_HEADER_OVERHEAD_BYTES + 4 * len(name) + len(value or b"")
    return size_bytes


class Accumulator:
    """A queue of batches per partition; a batch stays at the head of its queue until it is delivered or has failed."""

    def __init__(self, batch_size_bytes: int, linger_ms: int) -> None:
        self._batch_size_bytes = batch_size_bytes
        self._linger_ms = linger_ms
        self._queues: dict[TopicPartition, deque[Batch]] = {}
        self.size_bytes = 0  #: of all batches in the queues

    def append(self, tp: TopicPartition, record: Record, waiter: Waiter, now_ms: int) -> bool:
        """Add a record behind all others of its partition; return True when the sender should be woken."""
        queue = self._queues.setdefault(tp, deque())
        size_bytes = record_size_bytes(record)
        fresh = not queue or not self._fits(queue[-1], size_bytes)
        if fresh:
            queue.append(Batch(tp, now_ms))
            self.size_bytes += BATCH_HEADER_BYTES
        queue[-1].add(record, waiter)
        self.size_bytes += size_bytes
        return fresh or queue[-1].size_bytes >= self._batch_size_bytes

    def ready(self, now_ms: int, *, flushing: bool) -> list[Batch]:
        """Return the head of each queue that should be sent now; they are in flight from here on."""
        batches = [batch for batch in self._heads() if self._due_ms(batch, flushing) <= now_ms]
        for batch in batches:
            batch.in_flight = batch.closed = True
        return batches

    def next_due_ms(self, *, flushing: bool) -> int | None:
        """Return when the next batch should be sent; None if no batch waits."""
        return min((self._due_ms(batch, flushing) for batch in self._heads()), default=None)

    def release(self, batch: Batch) -> None:
        """Remove a batch that was delivered or has failed."""
        queue = self._queues[batch.tp]
        assert queue[0] is batch
        queue.popleft()
        self.size_bytes -= batch.size_bytes
        if not queue:
            del self._queues[batch.tp]

    def retry(self, batch: Batch, at_ms: int) -> None:
        """Send a batch, which stays the first of its partition, again at `at_ms`."""
        assert self._queues[batch.tp][0] is batch
        batch.in_flight = False
        batch.retry_at_ms = at_ms

    def replace(self, batch: Batch, parts: Sequence[Batch]) -> None:
        """Put smaller batches at the head of the queue in place of one that the broker refused."""
        self.release(batch)
        queue = self._queues.setdefault(batch.tp, deque())
        for part in reversed(parts):
            part.closed = True
            queue.appendleft(part)
        self.size_bytes += sum(part.size_bytes for part in parts)

    def abandon(self) -> None:
        """Cancel every future and drop all batches."""
        for queue in self._queues.values():
            for batch in queue:
                for waiter in (*batch.waiters, *(waiter for waiter, _ in batch.refused)):
                    waiter.cancel()
        self._queues.clear()
        self.size_bytes = 0

    def last_waiters(self) -> list[Waiter]:
        """Return the future of the last record of each partition; all earlier ones complete before it."""
        return [queue[-1].waiters[-1] for queue in self._queues.values()]

    def _heads(self) -> Iterator[Batch]:
        return (queue[0] for queue in self._queues.values() if not queue[0].in_flight)

    def _fits(self, batch: Batch, size_bytes: int) -> bool:
        return not batch.closed and batch.size_bytes + size_bytes <= self._batch_size_bytes

    def _due_ms(self, batch: Batch, flushing: bool) -> int:
        full = len(self._queues[batch.tp]) > 1 or batch.size_bytes >= self._batch_size_bytes
        if flushing or full or batch.closed:
            return batch.retry_at_ms
        return max(batch.retry_at_ms, batch.created_ms + self._linger_ms)
