"""Failures of brokers and of records, after which a producer continues."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.producer.producer import Producer
from barnabas.wire.messages.produce import ProduceRequest
from unit.client.fake_broker import NODE_ID, FakeBroker
from unit.client.producer.scenarios import play, watched


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
