import asyncio

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.producer.batch_sender import BatchSender
from barnabas.wire.records.record import Record, encode_batch
from unit.client.fake_broker import NODE_ID, FakeBroker
from unit.client.producer.scenarios import play


def test_a_batch_is_sent_again_if_its_leader_leaves_while_it_is_on_its_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        leaders = [9, NODE_ID]  # 9 has left

        async def leader(_: TopicPartition) -> int:
            return leaders.pop(0)

        monkeypatch.setattr(cluster, "leader", leader)
        async with BatchSender(cluster) as sender:
            await sender.put([(TopicPartition("t", 0), encode_batch([Record(0, 0, None, b"1")]))])
            await sender.flush()
        assert [record.value for record in broker.records("t")] == [b"1"]

    play(scenario)


@pytest.mark.parametrize("call", ["leader", "connection"])
def test_an_unexpected_error_is_raised_and_not_waited_for(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        async def fail(*_: object) -> None:
            raise UnicodeError("label empty or too long")  # of a broker's host name

        monkeypatch.setattr(cluster, call, fail)
        async with asyncio.timeout(10), BatchSender(cluster) as sender:
            await sender.put([(TopicPartition("t", 0), encode_batch([Record(0, 0, None, b"1")]))])
            with pytest.raises(UnicodeError, match="label empty"):
                await sender.flush()

    play(scenario)
