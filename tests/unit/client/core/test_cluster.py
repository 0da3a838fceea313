import asyncio
from random import Random

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import BrokerUnreachable
from barnabas.client.core.retry import Retry
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from unit.client.fake_broker import HANG, HANG_UP, NODE_ID, FakeBroker

TP = TopicPartition("t", 0)


def requested_topics(broker: FakeBroker) -> list[list[str] | None]:
    """Return the topics of each Metadata request."""
    requests = broker.received(MetadataRequest)
    return [None if each.topics is None else [topic.name for topic in each.topics] for each in requests]


def test_brokers_are_learned_from_the_first_that_responds() -> None:
    async def scenario() -> None:
        async with FakeBroker() as gone:
            pass
        async with FakeBroker() as broker, ClusterClient([gone.bootstrap, broker.bootstrap]) as cluster:
            assert cluster.metadata.nodes.keys() == {NODE_ID}
            assert cluster.metadata.cluster_id == "fake"

    asyncio.run(scenario())


def test_the_error_names_each_broker_that_did_not_respond() -> None:
    async def scenario() -> None:
        async with FakeBroker() as one, FakeBroker() as two:
            pass
        with pytest.raises(BrokerUnreachable, match="none of the brokers can be reached") as raised:
            await ClusterClient([one.bootstrap, two.bootstrap]).connect()
        assert str(one.port) in str(raised.value)
        assert str(two.port) in str(raised.value)

    asyncio.run(scenario())


def test_metadata_is_requested_once_and_again_when_leaders_moved_or_it_is_stale() -> None:
    async def scenario() -> None:
        clock = ManualClock()
        async with (
            FakeBroker() as broker,
            ClusterClient(broker.bootstrap, retry=Retry(clock=clock)) as cluster,
        ):
            broker.create("t")
            for _ in range(3):
                assert await cluster.leader(TP) == NODE_ID
            assert requested_topics(broker) == [[], ["t"]]
            cluster.invalidate()
            await cluster.leader(TP)
            clock.advance(300_001)
            await cluster.leader(TP)
            assert requested_topics(broker) == [[], ["t"], ["t"], ["t"]]

    asyncio.run(scenario())


def test_an_unknown_partition_is_requested_again_before_it_is_an_error() -> None:
    async def scenario() -> None:
        async with FakeBroker() as broker, ClusterClient(broker.bootstrap) as cluster:
            topic = broker.create("t")
            await cluster.leader(TP)
            topic.logs.append(bytearray())
            assert await cluster.leader(TopicPartition("t", 1)) == NODE_ID
            with pytest.raises(KafkaError) as raised:
                await cluster.leader(TopicPartition("t", 2))
            assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    asyncio.run(scenario())


def test_lookups_do_not_create_topics() -> None:
    async def scenario() -> None:
        async with FakeBroker() as broker, ClusterClient(broker.bootstrap) as cluster:
            broker.auto_create = True
            with pytest.raises(KafkaError, match="topic 't' does not exist"):
                await cluster.topic("t")
            assert broker.topics == {}

    asyncio.run(scenario())


def test_requests_share_a_connection_and_lanes_have_their_own() -> None:
    async def scenario() -> None:
        async with FakeBroker() as broker, ClusterClient(broker.bootstrap) as cluster:
            broker.answer(MetadataRequest, lambda _: HANG)
            stuck = asyncio.ensure_future(cluster.send(MetadataRequest(topics=[]), NODE_ID, lane="fetch"))
            while len(requested_topics(broker)) < 2:
                await asyncio.sleep(0)
            both = (cluster.refresh([]), cluster.send(MetadataRequest(topics=[]), NODE_ID))
            await asyncio.gather(*both)
            assert broker.connections == 2
            stuck.cancel()

    asyncio.run(scenario())


def test_a_lost_connection_is_reopened() -> None:
    async def scenario() -> None:
        retry = Retry(first_ms=1, random=Random(1))
        async with FakeBroker() as broker, ClusterClient(broker.bootstrap, retry=retry) as cluster:
            broker.answer(MetadataRequest, lambda _: HANG_UP)
            await cluster.retrying(lambda: cluster.refresh([]))
            assert broker.connections == 2

    asyncio.run(scenario())


def test_an_unknown_node_is_an_error_with_the_known_ones() -> None:
    async def scenario() -> None:
        async with FakeBroker() as broker, ClusterClient(broker.bootstrap) as cluster:
            with pytest.raises(KafkaError, match="no broker with node id 9; the cluster has: 1"):
                await cluster.send(MetadataRequest(topics=[]), 9)

    asyncio.run(scenario())


def test_an_unreachable_advertised_address_is_named_in_the_error() -> None:
    async def scenario() -> None:
        async with FakeBroker() as gone:
            pass
        async with FakeBroker() as broker, ClusterClient(broker.bootstrap) as cluster:
            elsewhere = MetadataResponseBroker(node_id=2, host="127.0.0.1", port=gone.port)
            broker.answer(MetadataRequest, lambda _: MetadataResponse(brokers=[elsewhere]))
            with pytest.raises(BrokerUnreachable, match="broker 2 advertises this address"):
                await cluster.send(MetadataRequest(topics=[]), 2)

    asyncio.run(scenario())


def test_closing_while_a_connection_opens_leaks_nothing() -> None:
    async def scenario() -> None:
        async with FakeBroker() as broker:
            cluster = ClusterClient(broker.bootstrap)
            connecting = asyncio.ensure_future(cluster.connect())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await cluster.close()
            outcome = await asyncio.gather(connecting, return_exceptions=True)
            assert isinstance(outcome[0], asyncio.CancelledError)
            assert cluster._connections == {}

    asyncio.run(scenario())
