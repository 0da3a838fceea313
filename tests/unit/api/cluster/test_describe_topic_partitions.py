from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.metadata.topics import PARTITION_STATES, PartitionRegistration, partition_key
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node


async def pages(node: RunningNode, limit: int, *names: str) -> list[DescribeTopicPartitionsResponse]:
    """Return every page, as a client reads them."""
    found, cursor = [], None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names], response_partition_limit=limit, cursor=cursor
        )
        page: DescribeTopicPartitionsResponse = await node.ask(request)
        found.append(page)
        if page.next_cursor is None:
            return found
        at = page.next_cursor
        cursor = Cursor(topic_name=at.topic_name, partition_index=at.partition_index)
        assert len(found) < 100


@settings(max_examples=25)
@given(limit=st.integers(1, 9), counts=st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_pages_contain_all_partitions_and_respect_the_limit(
    tmp_path_factory: pytest.TempPathFactory, limit: int, counts: list[int]
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path_factory.mktemp("node")) as node:
            await node.create(*(new_topic(f"t{at}", count) for at, count in enumerate(counts)))
            found: list[tuple[str | None, int]] = []
            for page in await pages(node, limit):
                here = [
                    (topic.name, each.partition_index) for topic in page.topics for each in topic.partitions
                ]
                assert len(here) <= limit
                found += here
            assert found == [(f"t{at}", index) for at, count in enumerate(counts) for index in range(count)]

    scenario()


@on_loop
async def test_topics_are_ordered_by_name_including_unknown_ones(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("b", 2), new_topic("a"))
        [page] = await pages(node, 100, "b", "gone", "a", "bad name", "a")
        assert [(topic.name, topic.error_code) for topic in page.topics] == [
            ("a", ErrorCode.NONE),
            ("b", ErrorCode.NONE),
            ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
            ("gone", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
        assert page.topics[0].topic_id == node.topic_id("a")


@on_loop
async def test_a_cursor_beyond_the_end_of_its_topic_does_not_raise_the_limit(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a"), new_topic("b", 3))
        request = DescribeTopicPartitionsRequest(
            response_partition_limit=2, cursor=Cursor(topic_name="a", partition_index=1000)
        )
        page: DescribeTopicPartitionsResponse = await node.ask(request)
        assert [(topic.name, len(topic.partitions)) for topic in page.topics] == [("a", 0), ("b", 2)]


@on_loop
async def test_a_partition_without_a_leader_has_an_error(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        key = partition_key(node.topic_id("t"), 0)
        change = PARTITION_STATES.put(key, PartitionRegistration(-1, 2, ()))
        await node.broker.metadata.wait_for_revision(await node.store.commit({}, (change,)))
        [page] = await pages(node, 10, "t")
        [partition] = page.topics[0].partitions
        assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE
        assert (partition.leader_id, partition.leader_epoch, partition.isr_nodes) == (-1, 2, [])
        assert partition.replica_nodes == [1]
