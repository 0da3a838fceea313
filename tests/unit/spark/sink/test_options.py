import pytest

from barnabas.reading.option_values import OptionError
from barnabas.wire.records.compression import Compression
from pyspark_barnabas.sink.options import (
    DeliveryGuarantee,
    SinkOptions,
    batch_options,
    connecting,
    stream_options,
)

BOOTSTRAP = {"kafka.bootstrap.servers": "127.0.0.1:9092"}


def batch(**options: str) -> SinkOptions:
    return batch_options({**BOOTSTRAP, **options})


def test_a_stream_is_exactly_once_and_a_batch_write_at_least_once_by_default() -> None:
    assert stream_options(BOOTSTRAP).delivery is DeliveryGuarantee.EXACTLY_ONCE
    assert batch().delivery is DeliveryGuarantee.AT_LEAST_ONCE
    assert batch(delivery="Exactly-Once").delivery is DeliveryGuarantee.EXACTLY_ONCE
    assert (
        stream_options({**BOOTSTRAP, "delivery": "at-least-once"}).delivery is DeliveryGuarantee.AT_LEAST_ONCE
    )


def test_names_are_case_insensitive() -> None:
    found = batch(TOPIC="t", sinkname="s", BatchId="3", delivery="exactly-once", INCLUDETIMESTAMP="true")
    assert (found.topic, found.name, found.batch_id, found.include_timestamp) == ("t", "s", 3, True)


def test_properties_of_kafkas_producer_are_accepted() -> None:
    found = batch(
        **{
            "kafka.acks": "1",
            "kafka.compression.type": "zstd",
            "kafka.batch.size": "64k",
            "kafka.max.request.size": "1048576",
            "kafka.buffer.memory": "33554432",
            "kafka.transaction.timeout.ms": "60000",
            "kafka.delivery.timeout.ms": "5000",
            "kafka.linger.ms": "5",
        }
    )
    assert (found.acks, found.compression, found.batch_bytes) == (1, Compression.ZSTD, 65_536)
    assert (found.request_bytes_max, found.buffer_bytes) == (1 << 20, 1 << 25)
    assert (found.transaction_timeout_ms, found.delivery_timeout_ms) == (60_000, 5_000)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"delivery": "at-most-once"},
            "option 'delivery' is 'at-most-once': one of exactly-once, at-least-once",
        ),
        ({"topic": ""}, "option 'topic' is ''"),
        ({"sinkName": "a b"}, "option 'sinkName' is 'a b': 1 to 200 letters"),
        ({"sinkName": "orders.1"}, "option 'sinkName' is 'orders.1': it must not end in a dot and a number"),
        ({"batchId": "1"}, "counts the batches of a sinkName, which is missing"),
        ({"batchId": "1", "sinkName": "s"}, "needs delivery=exactly-once"),
        ({"batchId": "-1", "sinkName": "s", "delivery": "exactly-once"}, "at least 0"),
        ({"kafka.acks": "2"}, "one of all, -1, 1, 0 is expected"),
        ({"kafka.acks": "1", "delivery": "exactly-once"}, "delivery=exactly-once needs all"),
        ({"kafka.compression.type": "rar"}, "one of none, gzip, snappy, lz4, zstd is expected"),
        ({"kafka.key.serializer": "x"}, "keys are written as bytes"),
        ({"kafka.transactional.id": "x"}, "option sinkName begins the transactional ids"),
        ({"kafka.bootstrap.servers": ""}, "host:port pairs of brokers are expected"),
    ],
)
def test_an_invalid_option_is_reported_with_valid_values(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        batch(**options)


def test_a_job_connects_its_sink_like_its_source() -> None:
    used = {"Kafka.Bootstrap.Servers": "a:1", "DelegationTokens": "true", "kafkaConsumer.pollTimeoutMs": "1"}
    assert connecting({**used, "subscribe": "orders", "minPartitions": "3"}) == used


def test_a_stream_numbers_its_batches_itself() -> None:
    with pytest.raises(OptionError, match="a stream counts its batches itself"):
        stream_options({**BOOTSTRAP, "sinkName": "s", "batchId": "1"})
