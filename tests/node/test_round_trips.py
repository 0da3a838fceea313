"""Fetched records equal produced ones, for all codecs, versions and acknowledgements."""

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record, decode_all, encode_batch
from support.batches import NOW_MS, batch, values_of
from support.nodes import APIS
from support.wire import Wire, produce_request

PRODUCE_VERSIONS = range(APIS[ProduceRequest.API_KEY].versions.first, 14)
FETCH_VERSIONS = range(APIS[FetchRequest.API_KEY].versions.first, 19)

RECORDS = [
    Record(0, NOW_MS, b"key", b"value", (("header", b"of it"), ("null", None))),
    Record(1, NOW_MS + 5, None, b"x" * 5000),
    Record(2, NOW_MS - 5, b"", None),
    Record(3, NOW_MS, "schlüssel".encode(), "ค่า".encode(), (("", b""),)),
]


@pytest.mark.parametrize("codec", list(Compression))
def test_every_codec_works_in_every_version(kafka: EmbeddedBroker, wire: Wire, codec: Compression) -> None:
    kafka.create_topic("t")
    packed = encode_batch(RECORDS, compression=codec)
    versions = [version for version in PRODUCE_VERSIONS if codec is not Compression.ZSTD or version >= 7]
    for number, version in enumerate(versions):
        answer = wire.produce("t", packed, version=version)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, number * len(RECORDS))
    end = len(versions) * len(RECORDS)
    for version in FETCH_VERSIONS:
        data = wire.fetch("t", version=version)
        assert (data.error_code, data.high_watermark) == (ErrorCode.NONE, end)
        found = decode_all(bytes(data.records or b""))
        assert [record.offset for record in found] == list(range(end))
        assert [record[1:] for record in found] == [record[1:] for record in RECORDS] * len(versions)


def test_a_batch_is_stored_unchanged_except_for_offset_and_epoch(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    wire.produce("t", batch(b"before"))
    sent = encode_batch(RECORDS, compression=Compression.LZ4)
    wire.produce("t", sent)
    kept = bytes(wire.fetch("t", 1).records or b"")
    assert kept[:8] == (1).to_bytes(8, "big")
    assert kept[8:12] == sent[8:12]
    assert kept[12:16] == (0).to_bytes(4, "big")
    assert kept[16:] == sent[16:]


@pytest.mark.parametrize("acks", [1, -1])
def test_an_acknowledged_record_can_be_read_immediately(kafka: EmbeddedBroker, wire: Wire, acks: int) -> None:
    kafka.create_topic("t")
    assert wire.produce("t", batch(b"x"), acks=acks).base_offset == 0
    assert values_of(wire.fetch("t").records) == [b"x"]


def test_acks_0_stores_records_without_a_response(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    request = produce_request("t", wire.topic_id("t"), batch(b"x"), acks=0)
    wire.send(request)
    assert values_of(wire.fetch("t").records) == [b"x"]  # the next response is the fetch's


def test_an_error_with_acks_0_closes_the_connection(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    wire.send(produce_request("t", wire.topic_id("t"), batch(b"x"), acks=0, partition=5))
    assert wire.is_closed()


def test_invalid_acks_are_rejected(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    assert wire.produce("t", batch(b"x"), acks=2).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert wire.list_offset("t", -1).offset == 0


def test_partitions_of_one_request_fail_independently(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t", partitions=2)
    broken = bytearray(batch(b"bad"))
    broken[-1] ^= 1
    request = produce_request("t", wire.topic_id("t"), batch(b"a"), broken, batch(b"c"))
    answers = wire.ask(request).responses[0].partition_responses
    codes = [ErrorCode(answer.error_code) for answer in answers]
    assert codes == [ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert "CRC" in answers[1].error_message
    assert values_of(wire.fetch("t").records) == [b"a"]
    assert not wire.fetch("t", partition=1).records


def test_a_record_larger_than_max_message_bytes_is_rejected(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t", configs={"max.message.bytes": "1000"})
    answer = wire.produce("t", batch(b"x" * 1000))
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert "1000" in (answer.error_message or "")
    assert wire.produce("t", batch(b"x" * 900)).error_code == ErrorCode.NONE


def test_invalid_records_are_reported_individually(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t", configs={"cleanup.policy": "compact"})
    records = [Record(0, NOW_MS, b"k", b"v"), Record(1, NOW_MS, None, b"no key")]
    answer = wire.produce("t", encode_batch(records))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [1]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_confluent_kafka_writes_and_reads(kafka: EmbeddedBroker, codec: str, acks: str) -> None:
    kafka.create_topic("t", partitions=2)
    sent = {(f"key {number}".encode(), f"value {number}".encode() * 20) for number in range(500)}
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "compression.type": codec, "acks": acks})
    for key, value in sent:
        producer.produce("t", value, key, headers={"n": b"1"})
    assert producer.flush(20) == 0
    assert {(record.key, record.value) for record in kafka.records("t", count=500)} == sent
    settings = {"group.id": "unused", "enable.auto.commit": False, "check.crcs": True}
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, **settings})
    consumer.assign([TopicPartition("t", 0, 0), TopicPartition("t", 1, 0)])
    messages: list[Any] = consumer.consume(500, timeout=20)
    consumer.close()
    assert {(message.key(), message.value()) for message in messages} == sent
    assert {tuple(message.headers()) for message in messages} == {(("n", b"1"),)}


def test_requests_on_one_connection_are_answered_in_order(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    waiting = wire.send(wire.fetch_request("t", 0, min_bytes=1, max_wait_ms=300))
    others = [wire.send(wire.fetch_request("t", 0)) for _ in range(100)]
    started_s = time.monotonic()
    for correlation_id in [waiting, *others]:
        wire.receive(FetchRequest, correlation_id)
    assert time.monotonic() - started_s >= 0.25


def test_log_append_time_is_returned_and_stored(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t", configs={"message.timestamp.type": "LogAppendTime"})
    answer = wire.produce("t", batch(b"x", timestamp_ms=5))
    assert answer.log_append_time_ms > NOW_MS
    [record] = decode_all(bytes(wire.fetch("t").records or b""))
    assert record.timestamp_ms == answer.log_append_time_ms


def test_a_topics_codec_recompresses_other_batches(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t", configs={"compression.type": "zstd"})
    wire.produce("t", encode_batch(RECORDS, compression=Compression.GZIP))
    kept = bytes(wire.fetch("t").records or b"")
    assert kept[22] & 7 == Compression.ZSTD
    assert [record[1:] for record in decode_all(kept)] == [record[1:] for record in RECORDS]


def test_old_produce_versions_may_not_send_zstd(kafka: EmbeddedBroker, wire: Wire) -> None:
    """KIP-110."""
    kafka.create_topic("t")
    packed = encode_batch(RECORDS, compression=Compression.ZSTD)
    for version in range(3, 7):
        answer = wire.produce("t", packed, version=version)
        assert answer.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("compression_type", ["zstd", "producer"])
def test_old_fetch_versions_receive_zstd(kafka: EmbeddedBroker, wire: Wire, compression_type: str) -> None:
    """As in Apache Kafka 4: a client may support a codec that its protocol version does not."""
    kafka.create_topic("zstd", configs={"compression.type": compression_type})
    wire.produce("zstd", encode_batch(RECORDS, compression=Compression.ZSTD))
    for version in range(4, 11):
        answer = wire.fetch("zstd", version=version)
        assert answer.error_code == ErrorCode.NONE
        assert [record[1:] for record in decode_all(bytes(answer.records or b""))] == [
            record[1:] for record in RECORDS
        ]
