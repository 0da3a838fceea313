from random import Random

import confluent_kafka
import pytest

from barnabas.client.producer.partitioner import Sticky, murmur2, partition_for_key
from barnabas.wire.records.record import decode_all
from unit.client.fake_broker import FakeBroker


@pytest.mark.parametrize(
    ("data", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_equals_that_of_the_java_clients(data: bytes, signed: int) -> None:
    assert murmur2(data) == signed % (1 << 32)


def test_keys_are_partitioned_as_by_librdkafkas_java_partitioner(threaded_broker: FakeBroker) -> None:
    topic = threaded_broker.create("t", 7)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": threaded_broker.bootstrap, "partitioner": "murmur2_random"}
    )
    keys = [bytes(range(size)) for size in range(1, 60)]
    for key in keys:
        producer.produce("t", b"v", key)
    assert producer.flush(10) == 0
    placed = {record.key: index for index, log in enumerate(topic.logs) for record in decode_all(bytes(log))}
    assert placed == {key: partition_for_key(key, 7) for key in keys}


def test_records_without_key_stay_on_a_partition_for_a_batch() -> None:
    sticky = Sticky(1_000, Random(3))
    chosen = [sticky.partition("t", range(100), 100) for _ in range(40)]
    runs = [set(chosen[start : start + 10]) for start in range(0, 40, 10)]
    assert all(len(run) == 1 for run in runs)
    assert len(set(chosen)) > 1


def test_sticky_partitions_are_per_topic() -> None:
    sticky = Sticky(10, Random(3))
    first = sticky.partition("a", range(100), 1)
    sticky.partition("b", range(100), 100)
    assert sticky.partition("a", range(100), 1) == first


def test_an_unavailable_partition_is_abandoned() -> None:
    sticky = Sticky(1_000, Random(3))
    first = sticky.partition("t", [0, 1], 1)
    assert sticky.partition("t", [1 - first], 1) == 1 - first
