"""Records that no consumer could read are rejected when they are produced, at little cost in memory and time."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.records.batch import BATCH_HEADER_BYTES, read_header, seal
from barnabas.wire.records.compression import Compression
from support.admin import create, new_topic
from support.batches import NOW_MS, batch, values_of
from support.malformed import batch_of, record_with_headers, with_body
from support.process import BrokerProcess
from support.wire import Wire

PACKING = [codec for codec in Compression if codec is not Compression.NONE]
MIB = 1 << 20


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data") as broker:
        yield broker


@pytest.mark.parametrize("codec", PACKING)
@pytest.mark.parametrize("flaw", ["garbage", "broken", "count"])
def test_a_consumer_continues_where_malformed_records_were_rejected(
    kafka: EmbeddedBroker, wire: Wire, codec: Compression, flaw: str
) -> None:
    kafka.create_topic("t")
    sound = batch(b"x" * 100, compression=codec)
    malformed = {
        "garbage": batch_of(codec, b"garbage"),
        "broken": with_body(sound, bytes(len(sound) - BATCH_HEADER_BYTES)),
        "count": with_body(sound, bytes(sound[BATCH_HEADER_BYTES:]), 2),
    }[flaw]
    assert wire.produce("t", batch(b"before", compression=codec)).base_offset == 0
    answer = wire.produce("t", malformed)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    assert wire.produce("t", batch(b"after", compression=codec)).base_offset == 1
    assert values_of(wire.fetch("t").records) == [b"before", b"after"]


def test_librdkafka_reads_nothing_of_rejected_records(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    wire.produce("t", batch_of(Compression.NONE, b"garbage"))
    wire.produce("t", batch(b"after"))
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition("t", 0, 0)])
    message = consumer.poll(10)
    assert message is not None
    assert (message.error(), message.value()) == (None, b"after")
    consumer.close()


def test_a_header_with_a_wrong_largest_timestamp_is_corrected(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    lying = bytearray(batch(b"x"))
    struct.pack_into(">q", lying, 35, 5)
    seal(lying, 0)
    assert wire.produce("t", lying).error_code == ErrorCode.NONE
    assert read_header(bytes(wire.fetch("t").records or b"")).max_timestamp == NOW_MS


def test_a_decompression_bomb_of_headers_costs_little_memory(
    broker: BrokerProcess,
) -> None:
    bomb = batch_of(Compression.ZSTD, record_with_headers(100_000_000))
    assert len(bomb) < 20_000
    with Wire(broker.port) as wire:
        create(wire, new_topic("t"))
        wire.produce("t", batch(b"before"))
        before_bytes = peak_bytes(broker)
        answer = wire.produce("t", bomb)
        assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert "socket.request.max.bytes" in (answer.error_message or "")
        for _ in range(3):
            fitting = wire.produce("t", batch_of(Compression.ZSTD, record_with_headers(49_000_000)))
            assert fitting.error_code == ErrorCode.INVALID_RECORD
        assert peak_bytes(broker) - before_bytes < 250 * MIB
        assert wire.produce("t", batch(b"after")).base_offset == 1


def peak_bytes(broker: BrokerProcess) -> int:
    status = Path(f"/proc/{broker.process.pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize("codec", PACKING)
def test_a_large_compressed_batch_is_validated_in_a_thread_and_stored(
    kafka: EmbeddedBroker, wire: Wire, codec: Compression
) -> None:
    kafka.create_topic("t")
    values = [b"%07d" % number * 100 for number in range(2_000)]
    sent = batch(*values, compression=codec)
    assert wire.produce("t", sent).base_offset == 0
    assert wire.produce("t", batch(b"after")).base_offset == len(values)
    assert values_of(wire.fetch("t").records) == [*values, b"after"]
