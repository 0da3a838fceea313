"""Responses of ElectLeaders; the decision has its own tests."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.decision import Decision
from barnabas.metadata.topics import NO_LEADER, PARTITION_STATES, PartitionRegistration, partition_key
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node


async def without_leader(node: RunningNode, topic: str, index: int = 0) -> None:
    """Remove a partition's leader, which a broker does not do to itself."""
    put = PARTITION_STATES.put(
        partition_key(node.topic_id(topic), index), PartitionRegistration(NO_LEADER, 4, (1,), replicas=(1,))
    )
    await node.broker.metadata.write(lambda image: Decision(None, (put,)))


def codes_of(response: Any) -> dict[str, list[tuple[int, str]]]:
    return {
        result.topic: [
            (each.partition_id, ErrorCode(each.error_code).name) for each in result.partition_result
        ]
        for result in response.replica_election_results
    }


@pytest.mark.parametrize("version", range(3))
def test_each_partition_has_its_own_result(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t", 2))
            await without_leader(node, "t")
            request = ElectLeadersRequest(0, [TopicPartitions("t", [0, 1, 2]), TopicPartitions("gone", [0])])
            response = await node.ask(request, version)
            assert response.error_code == ErrorCode.NONE
            assert codes_of(response) == {
                "t": [(0, "NONE"), (1, "ELECTION_NOT_NEEDED"), (2, "UNKNOWN_TOPIC_OR_PARTITION")],
                "gone": [(0, "UNKNOWN_TOPIC_OR_PARTITION")],
            }
            results = response.replica_election_results[0].partition_result
            assert [bool(each.error_message) for each in results] == [False, True, True]
            partition = node.partition("t")
            assert (partition.is_leader, partition.leader_epoch) == (True, 5)

    scenario()


@on_loop
async def test_null_elects_every_missing_leader(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", 2), new_topic("fine"))
        await without_leader(node, "t", 1)
        response = await node.ask(ElectLeadersRequest(1, None))
        assert codes_of(response) == {"t": [(1, "NONE")], "fine": []}


@on_loop
async def test_an_empty_topic_list_elects_nothing(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        response = await node.ask(ElectLeadersRequest(7, [], timeout_ms=0))
        assert (response.error_code, response.replica_election_results) == (ErrorCode.NONE, [])


@pytest.mark.parametrize("election_type", [2, -1])
def test_an_unknown_election_type_is_rejected(tmp_path: Path, election_type: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t"))
            response = await node.ask(ElectLeadersRequest(election_type, [TopicPartitions("t", [0])]))
            assert response.error_code == ErrorCode.INVALID_REQUEST
            [result] = response.replica_election_results[0].partition_result
            assert result.error_code == ErrorCode.INVALID_REQUEST
            assert f"type {election_type} is unknown" in result.error_message

    scenario()


@on_loop
async def test_an_election_may_complete_after_its_timeout(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        await without_leader(node, "t")
        node.store.hold()
        response = await node.ask(ElectLeadersRequest(0, [TopicPartitions("t", [0])], timeout_ms=1))
        assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert codes_of(response) == {"t": [(0, "REQUEST_TIMED_OUT")]}
        assert not node.partition("t").is_leader
        node.store.release()
        await node.broker.metadata.wait_for_revision(node.store.revision + 1)
        assert node.partition("t").is_leader
