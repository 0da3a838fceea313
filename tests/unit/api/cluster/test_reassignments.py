"""Responses of AlterPartitionReassignments and ListPartitionReassignments, and reassignments in other responses."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.brokers import decide_register
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from support.images import broker, new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node


def reassignment_request(
    topic: str, *targets: tuple[int, list[int] | None], **fields: Any
) -> AlterPartitionReassignmentsRequest:
    partitions = [ReassignablePartition(index, replicas) for index, replicas in targets]
    return AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(topic, partitions)], **fields)


async def join(node: RunningNode, broker_id: int) -> None:
    """Register another broker."""
    await node.broker.metadata.write(lambda image: decide_register(image.brokers, broker(broker_id)))


def codes_of(response: Any) -> list[str]:
    return [ErrorCode(each.error_code).name for topic in response.responses for each in topic.partitions]


@pytest.mark.parametrize("version", [0, 1])
def test_each_partition_has_its_own_result(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t", 3))
            response = await node.ask(
                reassignment_request("t", (0, [1]), (1, [2]), (2, None), (3, [1])), version
            )
            assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
            assert codes_of(response) == [
                *[
                    "NONE",
                    "INVALID_REPLICA_ASSIGNMENT",
                    "NO_REASSIGNMENT_IN_PROGRESS",
                    "UNKNOWN_TOPIC_OR_PARTITION",
                ]
            ]
            assert [bool(each.error_message) for each in response.responses[0].partitions] == [
                False,
                *[True] * 3,
            ]

    scenario()


@on_loop
async def test_a_reassignment_is_shown_by_every_api_that_shows_partitions(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", 2))
        await join(node, 2)
        assert codes_of(await node.ask(reassignment_request("t", (1, [2])))) == ["NONE"]
        [topic] = (await node.ask(ListPartitionReassignmentsRequest())).topics
        [partition] = topic.partitions
        assert (topic.name, partition.partition_index) == ("t", 1)
        assert (partition.replicas, partition.adding_replicas, partition.removing_replicas) == (
            [2, 1],
            [2],
            [1],
        )
        [found] = (await node.ask(MetadataRequest([MetadataRequestTopic(name="t")]))).topics
        described = (await node.ask(DescribeTopicPartitionsRequest([TopicRequest("t")], 9))).topics[0]
        for shown in (found.partitions[1], described.partitions[1]):
            assert (shown.replica_nodes, shown.isr_nodes, shown.leader_id) == ([2, 1], [1], 1)


@on_loop
async def test_a_reassignment_can_be_cancelled(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        await join(node, 2)
        await node.ask(reassignment_request("t", (0, [2])))
        assert codes_of(await node.ask(reassignment_request("t", (0, None)))) == ["NONE"]
        assert (await node.ask(ListPartitionReassignmentsRequest())).topics == []
        assert node.partition("t").replicas == (1,)


@pytest.mark.parametrize("allowed", [True, False])
def test_the_replication_factor_changes_only_if_the_request_allows_it(tmp_path: Path, allowed: bool) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t"))
            await join(node, 2)
            request = reassignment_request("t", (0, [1, 2]), allow_replication_factor_change=allowed)
            response = await node.ask(request)
            assert response.allow_replication_factor_change is allowed
            assert codes_of(response) == ["NONE" if allowed else "INVALID_REPLICATION_FACTOR"]

    scenario()


@pytest.mark.parametrize("allowed", ["true", "false"])
def test_the_topics_config_decides_whether_an_unclean_election_may_complete_it(
    tmp_path: Path, allowed: str
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t", configs={"unclean.leader.election.enable": allowed}))
            await join(node, 2)
            await node.ask(reassignment_request("t", (0, [2])))
            await only_in_sync(node, "t", 2)
            codes = codes_of(await node.ask(reassignment_request("t", (0, None))))
            assert codes == ["NONE" if allowed == "true" else "INVALID_REPLICA_ASSIGNMENT"]

    scenario()


async def only_in_sync(node: RunningNode, topic: str, broker_id: int) -> None:
    """Leave one new replica in the ISR of a moving partition, while others are still catching up."""
    from dataclasses import replace

    from barnabas.metadata.decision import Decision
    from barnabas.metadata.topics import PARTITION_STATES, partition_key

    image = node.broker.image
    state = image.partition(image.topics[topic], 0)
    left = replace(
        state, leader=broker_id, isr=(broker_id,), adding=(broker_id, 9), replicas=(broker_id, 9, 1)
    )
    put = PARTITION_STATES.put(partition_key(node.topic_id(topic), 0), left)
    await node.broker.metadata.write(lambda _: Decision(None, (put,)))


@on_loop
async def test_an_empty_topic_list_changes_nothing(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        response = await node.ask(AlterPartitionReassignmentsRequest(topics=[], timeout_ms=0))
        assert (response.error_code, response.responses) == (ErrorCode.NONE, [])


@on_loop
async def test_only_moving_partitions_are_listed(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", 2), new_topic("still"))
        await join(node, 2)
        await node.ask(reassignment_request("t", (0, [2]), (1, [2])))

        async def listed(*topics: tuple[str, list[int]]) -> dict[str, list[int]]:
            asked = [ListPartitionReassignmentsTopics(name, indexes) for name, indexes in topics]
            response = await node.ask(ListPartitionReassignmentsRequest(topics=asked))
            return {
                topic.name: [each.partition_index for each in topic.partitions] for topic in response.topics
            }

        assert await listed(("t", [1, 7]), ("still", [0]), ("gone", [0])) == {"t": [1]}
        assert await listed() == {}


@on_loop
async def test_a_reassignment_may_start_after_its_timeout(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        await join(node, 2)
        node.store.hold()
        response = await node.ask(reassignment_request("t", (0, [2]), timeout_ms=1))
        assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert codes_of(response) == ["REQUEST_TIMED_OUT"]
        assert (await node.ask(ListPartitionReassignmentsRequest())).topics == []
        node.store.release()
        await node.broker.metadata.wait_for_revision(node.store.revision + 1)
        assert len((await node.ask(ListPartitionReassignmentsRequest())).topics) == 1
