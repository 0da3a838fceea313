import asyncio
from collections.abc import Iterator

import pytest

from barnabas.base.ids import ProducerIdAndEpoch, TopicPartition
from barnabas.client.producer.accumulator import (
    Accumulator,
    Batch,
    RecordMetadata,
    record_size_bytes,
)
from barnabas.wire.records.batch import read_header
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record, decode_records, encode_batch

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
RECORD = Record(0, 5, b"k", b"v" * 100, (("h", b"x"),))


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


class FilledAccumulator:
    """An accumulator with a helper that appends records."""

    def __init__(self, loop: asyncio.AbstractEventLoop, size_bytes: int = 400, linger_ms: int = 10) -> None:
        self.loop = loop
        self.accumulator = Accumulator(size_bytes, linger_ms)

    def add(self, tp: TopicPartition = P0, now_ms: int = 0) -> "asyncio.Future[RecordMetadata]":
        waiter: asyncio.Future[RecordMetadata] = self.loop.create_future()
        self.accumulator.append(tp, RECORD, waiter, now_ms)
        return waiter

    def ready(self, now_ms: int, *, flushing: bool = False) -> list[Batch]:
        return self.accumulator.ready(now_ms, flushing=flushing)


def test_a_batch_lingers_for_more_records(loop: asyncio.AbstractEventLoop) -> None:
    filling = FilledAccumulator(loop)
    filling.add()
    assert filling.ready(9) == []
    assert filling.accumulator.next_due_ms(flushing=False) == 10
    (batch,) = filling.ready(10)
    assert len(batch.records) == 1
    assert filling.accumulator.next_due_ms(flushing=False) is None


def test_a_flush_does_not_linger(loop: asyncio.AbstractEventLoop) -> None:
    filling = FilledAccumulator(loop)
    filling.add(P0)
    filling.add(P1)
    assert filling.accumulator.next_due_ms(flushing=True) == 0
    assert [batch.tp for batch in filling.ready(0, flushing=True)] == [P0, P1]


def test_a_full_batch_is_sent_immediately_and_the_next_waits_for_its_completion(
    loop: asyncio.AbstractEventLoop,
) -> None:
    filling = FilledAccumulator(loop)
    for _ in range(5):
        filling.add()
    (first,) = filling.ready(0)
    assert len(first.records) == 2
    assert filling.ready(100) == []
    filling.accumulator.release(first)
    (second,) = filling.ready(0)
    assert second is not first


def test_a_batch_in_flight_accepts_no_records(loop: asyncio.AbstractEventLoop) -> None:
    filling = FilledAccumulator(loop, size_bytes=10_000)
    filling.add()
    (batch,) = filling.ready(10)
    filling.add()
    filling.accumulator.retry(batch, 20)
    filling.add()
    assert len(batch.records) == 1


def test_a_retried_batch_stays_first_and_waits_for_its_backoff(loop: asyncio.AbstractEventLoop) -> None:
    filling = FilledAccumulator(loop)
    for _ in range(3):
        filling.add()
    (first,) = filling.ready(0)
    filling.accumulator.retry(first, 50)
    assert filling.ready(49, flushing=True) == []
    assert filling.ready(50) == [first]


def test_a_batch_that_is_too_large_is_split_in_place_and_in_order(loop: asyncio.AbstractEventLoop) -> None:
    filling = FilledAccumulator(loop, size_bytes=1_000)
    waiters = [filling.add() for _ in range(9)]
    (whole,) = filling.ready(0)
    filling.accumulator.replace(whole, whole.halves())
    split = []
    while batches := filling.ready(0, flushing=True):
        split += batches
        filling.accumulator.release(batches[0])
    assert [waiter for batch in split for waiter in batch.waiters] == waiters
    assert len(split[0].records) == len(whole.records) // 2


def test_buffered_bytes_are_counted_until_completion(loop: asyncio.AbstractEventLoop) -> None:
    filling = FilledAccumulator(loop)
    for _ in range(5):
        filling.add()
    assert filling.accumulator.size_bytes > 5 * record_size_bytes(RECORD)
    while batches := filling.ready(0, flushing=True):
        filling.accumulator.release(batches[0])
    assert filling.accumulator.size_bytes == 0


def test_the_last_future_of_each_partition_covers_earlier_ones(loop: asyncio.AbstractEventLoop) -> None:
    filling = FilledAccumulator(loop)
    filling.add(P0)
    last = [filling.add(P0), filling.add(P1)]
    assert filling.accumulator.last_waiters() == last


def test_abandoned_records_are_cancelled(loop: asyncio.AbstractEventLoop) -> None:
    filling = FilledAccumulator(loop)
    waiters = [filling.add(), filling.add(P1)]
    filling.accumulator.abandon()
    assert all(waiter.cancelled() for waiter in waiters)
    assert filling.accumulator.size_bytes == 0


def test_the_size_of_a_record_is_never_underestimated() -> None:
    for record in (
        RECORD,
        Record(0, 0, None, None),
        Record(0, 0, b"k" * 70_000, b"", (("ü" * 50, None),) * 20),
    ):
        assert len(encode_batch([record])) - 61 <= record_size_bytes(record)


def test_a_batch_is_encoded_once_with_its_producer_id_and_sequence(loop: asyncio.AbstractEventLoop) -> None:
    filling = FilledAccumulator(loop)
    filling.add()
    (batch,) = filling.ready(0, flushing=True)
    batch.identity, batch.base_sequence = ProducerIdAndEpoch(7, 3), 11
    batch.encode(Compression.GZIP)
    encoded = batch.encoded
    header = read_header(encoded)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, 11)
    assert header.compression is Compression.GZIP
    assert decode_records(encoded) == [RECORD]
    batch.base_sequence = 99
    batch.encode(Compression.NONE)
    assert batch.encoded is encoded
