"""Failures of brokers and of records, after which a producer continues."""

from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.producer.accumulator import Batch
from barnabas.client.producer.producer import Producer
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.records.batch import read_header
from barnabas.wire.records.compression import Compression
from unit.client.fake_broker import NODE_ID, FakeBroker
from unit.client.producer.scenarios import headers, play, refused, watched


def test_a_record_is_sent_to_the_new_leader_if_the_last_one_has_left_unnoticed() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        async with FakeBroker() as second, FakeBroker() as third:
            broker.add(2, second)
            broker.leaders["t", 0] = 2
            async with watched(Producer(cluster)) as producer:
                await producer.send_and_wait("t", b"1")
                del broker.nodes[2]
                broker.add(3, third)
                broker.leaders["t", 0] = 3
                broker.create("u")
                await producer.send_and_wait("u", b"-")  # learns the brokers, but not the leaders of "t"
                await producer.send_and_wait("t", b"2")
            assert [len(each.received(ProduceRequest)) for each in (second, third)] == [1, 1]
            assert [record.value for record in broker.records("t")] == [b"1", b"2"]

    play(scenario)


def test_a_record_waits_for_a_leader_that_has_left_until_there_is_another() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        async with FakeBroker() as second:
            broker.leaders["t", 0] = 2
            async with watched(Producer(cluster)) as producer:
                delivery = await producer.send("t", b"1", partition=0)
                await cluster.retry.sleep(0.01)
                broker.add(2, second)
                assert (await delivery).offset == 0

    play(scenario)


def test_a_record_is_sent_again_if_its_leader_leaves_while_it_is_on_its_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        leaders = [9, NODE_ID]  # 9 has left

        async def leader(_: TopicPartition) -> int:
            return leaders.pop(0)

        monkeypatch.setattr(cluster, "leader", leader)
        async with watched(Producer(cluster)) as producer:
            assert (await producer.send_and_wait("t", b"1")).offset == 0

    play(scenario)


def check_sequences(broker: FakeBroker) -> dict[int, int]:
    """Let the broker refuse batches out of order; return what it knows: the next sequence of each producer id."""
    known: dict[int, int] = {}

    def produce(request: Any) -> Any:
        header = read_header(request.topic_data[0].partition_data[0].records)
        if header.base_sequence != known.get(header.producer_id, 0):
            return refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)(request)
        known[header.producer_id] = header.base_sequence + header.records_count
        return broker.produce(request)

    broker.serve(ProduceRequest, produce)
    return known


def test_records_are_stored_with_another_producer_id_after_the_leader_has_lost_a_batch() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        known = check_sequences(broker)
        async with watched(Producer(cluster)) as producer:
            await producer.send_and_wait("t", b"1")
            await producer.send_and_wait("t", b"2")
            known[headers(broker)[0].producer_id] -= 1
            await producer.send_and_wait("t", b"3")
            await producer.send_and_wait("t", b"4")
        assert [record.value for record in broker.records("t")] == [b"1", b"2", b"3", b"4"]
        *_, wrong, first, second = headers(broker)
        assert wrong.producer_id != first.producer_id == second.producer_id
        assert (first.base_sequence, second.base_sequence) == (0, 1)

    play(scenario)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH])
def test_a_producer_id_that_the_leader_refuses_is_replaced(code: ErrorCode) -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        broker.answer(ProduceRequest, refused(code))
        async with watched(Producer(cluster)) as producer:
            assert (await producer.send_and_wait("t", b"1")).offset == 0
        assert len(broker.received(InitProducerIdRequest)) == 2

    play(scenario)


def test_a_batch_whose_sequences_are_always_refused_fails_at_its_timeout() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        broker.serve(ProduceRequest, refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))
        async with watched(Producer(cluster, delivery_timeout_ms=20)) as producer:
            with pytest.raises(KafkaError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
                await producer.send_and_wait("t", b"1")
        assert len(broker.received(InitProducerIdRequest)) > 1

    play(scenario)


def test_an_encoding_that_fails_fails_only_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        encode = Batch.encode

        def encode_partition_1(batch: Batch, compression: Compression) -> None:
            if batch.tp.partition == 0:
                raise ZeroDivisionError
            encode(batch, compression)

        async with watched(Producer(cluster, linger_ms=60_000)) as producer:
            monkeypatch.setattr(Batch, "encode", encode_partition_1)
            failing, other = [await producer.send("t", b"1", partition=index) for index in (0, 1)]
            await producer.flush()
            assert isinstance(failing.exception(), ZeroDivisionError)
            assert other.result().offset == 0
            monkeypatch.undo()
            later = await producer.send("t", b"2", partition=0)
            await producer.flush()
            assert later.result().offset == 0
        assert [header.base_sequence for header in headers(broker)] == [0, 0]
        assert len({header.producer_id for header in headers(broker)}) == 1

    play(scenario, partitions=2)


def test_an_unexpected_failure_of_a_request_reaches_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        async def connection(*_: Any) -> Any:
            raise ZeroDivisionError

        async with watched(Producer(cluster)) as producer:
            await producer.send_and_wait("t", b"1")
            monkeypatch.setattr(cluster, "connection", connection)
            failing = await producer.send("t", b"2")
            await producer.flush()
            assert isinstance(failing.exception(), ZeroDivisionError)
            monkeypatch.undo()
            await producer.send_and_wait("t", b"3")
        assert [record.value for record in broker.records("t")] == [b"1", b"3"]

    play(scenario)
