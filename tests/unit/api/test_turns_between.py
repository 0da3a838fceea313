"""Requests that yield to others find the cluster changed when they continue."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from barnabas.api.data import fetch
from barnabas.api.dispatch import RequestRejectedError
from barnabas.base.turns import Share
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.batches import batch
from support.images import new_topic
from support.loop import in_virtual_time, on_loop
from support.nodes import RunningNode, frame_of, running_node


def go_first(node: RunningNode, number: int, do: Callable[[], Awaitable[object]]) -> None:
    """Run `do` at the checkpoint with that number, as if the turn were over there."""
    count = 0

    async def checkpoint(share: Share) -> None:
        nonlocal count
        count += 1
        if count == number:
            await do()

    node.broker.turns.checkpoint = checkpoint  # type: ignore[method-assign]


def fetch_request(node: RunningNode, partitions_count: int = 1) -> FetchRequest:
    partitions = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000)
        for index in range(partitions_count)
    ]
    topics = [FetchTopic(topic_id=node.topic_id("t"), partitions=partitions)]
    return FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1000, topics=topics)


@pytest.mark.parametrize("piece", [500, 1])
def test_a_fetch_notices_records_that_arrive_while_it_yields(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(fetch, "READ_PARTITIONS_MAX", piece)

    @in_virtual_time
    async def scenario(number: int) -> None:
        async with running_node(tmp_path / str(number)) as node:
            await node.create(new_topic("t", 2))

            async def append() -> None:
                node.partition("t").append_as_leader(memoryview(bytearray(batch(b"v"))), 1)

            go_first(node, number, append)
            asking = asyncio.create_task(node.ask(fetch_request(node, 2)))
            await asyncio.sleep(0.1)
            if node.partition("t").log.log_end_offset == 0:
                await append()
            answer = await asking
            assert asyncio.get_running_loop().time() == pytest.approx(0.1, abs=0.01)
            assert answer.responses[0].partitions[0].records

    for number in range(1, 8):
        (tmp_path / str(number)).mkdir()
        scenario(number)


@pytest.mark.parametrize("piece", [500, 1])
def test_a_topic_deleted_during_a_fetch_is_an_error_of_its_partitions_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(fetch, "READ_PARTITIONS_MAX", piece)

    @in_virtual_time
    async def scenario(number: int) -> None:
        async with running_node(tmp_path / str(number)) as node:
            await node.create(new_topic("t", 2))
            request = fetch_request(node, 2)
            deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000)
            go_first(node, number, lambda: node.ask(deletion))
            assert (await node.ask(request)).error_code == ErrorCode.NONE

    for number in range(1, 6):
        (tmp_path / str(number)).mkdir()
        scenario(number)


@on_loop
async def test_metadata_of_all_topics_caches_nothing_stale(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a"), new_topic("t"))
        growth = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="t", count=4, assignments=None)], timeout_ms=1000
        )
        go_first(node, 2, lambda: node.ask(growth))
        await node.ask(MetadataRequest(topics=None))
        for topics in (None, [MetadataRequestTopic(name="t")]):
            response = await node.ask(MetadataRequest(topics=topics))
            assert {len(each.partitions) for each in response.topics if each.name == "t"} == {4}


@on_loop
async def test_a_produce_request_beyond_its_turn_continues_in_a_later_one(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", 3))
        data = [PartitionProduceData(index=index, records=bytes(batch(b"v"))) for index in range(3)]
        request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=data)])
        is_over = node.broker.turns.must_yield
        node.broker.turns.must_yield = lambda: True  # type: ignore[method-assign]
        _, answer = node.begin(frame_of(request, 9))
        node.broker.turns.must_yield = is_over  # type: ignore[method-assign]
        assert not isinstance(answer, list)
        assert [node.partition("t", index).log.log_end_offset for index in range(3)] == [1, 0, 0]
        assert answer is not None
        await answer
        assert [node.partition("t", index).log.log_end_offset for index in range(3)] == [1, 1, 1]


@on_loop
async def test_a_truncated_request_before_the_login_is_rejected(tmp_path: Path) -> None:
    class Strict:
        def admit(self, _api_key: int, _name: str) -> None:
            raise RuntimeError("not logged in")

    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        data = [PartitionProduceData(index=0, records=bytes(batch(b"v")))]
        frame = frame_of(ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=data)]), 9)
        node.connection.authenticator = Strict()  # type: ignore[assignment]
        with pytest.raises(RequestRejectedError):
            node.begin(frame[:-20])
