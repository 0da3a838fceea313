"""Responses of DescribeQuorum and of the requests that would change voters."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.update_raft_voter import Listener as UpdatedListener
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest
from support.loop import on_loop
from support.nodes import running_node

METADATA = "__cluster_metadata"
DIRECTORY = b"d" * 16


def quorum_request(*topics: tuple[str, list[int]]) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        [TopicData(name, list(map(PartitionData, indexes))) for name, indexes in topics]
    )


@pytest.mark.parametrize("version", range(3))
def test_this_node_is_the_only_voter_and_leader(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            response = await node.ask(quorum_request((METADATA, [0])), version)
            [partition] = response.topics[0].partitions
            revision = node.broker.image.revision
            assert (response.error_code, partition.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
            assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (1, 1, revision)
            [voter] = partition.current_voters
            assert (voter.replica_id, voter.log_end_offset, partition.observers) == (1, revision, [])
            now_ms = node.clock.wall_ms() if version else -1
            assert (voter.last_fetch_timestamp, voter.last_caught_up_timestamp) == (now_ms, now_ms)
            nodes = [
                (each.node_id, [(at.name, at.host, at.port) for at in each.listeners])
                for each in response.nodes
            ]
            assert nodes == ([(1, [("PLAINTEXT", "host1", 9092)])] if version == 2 else [])

    scenario()


@pytest.mark.parametrize(
    "topics",
    [
        [("t", [0, 3])],
        [(METADATA, [1])],
        [(METADATA, [0, 0])],
        [(METADATA, [0]), ("t", [0])],
        [(METADATA, [0]), (METADATA, [0])],
        [(METADATA, [])],
        [],
    ],
)
def test_every_topic_but_the_metadata_log_is_unknown(tmp_path: Path, topics: list[Any]) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            response = await node.ask(quorum_request(*topics))
            returned = [
                (topic.topic_name, [each.partition_index for each in topic.partitions])
                for topic in response.topics
            ]
            assert returned == topics
            partitions = [each for topic in response.topics for each in topic.partitions]
            assert {each.error_code for each in partitions} <= {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
            assert all(each.error_message for each in partitions)
            assert response.nodes == []

    scenario()


@on_loop
async def test_voter_changes_are_rejected_with_the_reason(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        ours = node.broker.cluster_id
        added = await node.ask(AddRaftVoterRequest(ours, 1000, 7, DIRECTORY, [Listener("A", "host", 1)]))
        assert (ErrorCode(added.error_code).name, "only voter is the controller" in added.error_message) == (
            "UNSUPPORTED_VERSION",
            True,
        )
        removed = await node.ask(RemoveRaftVoterRequest(ours, 7, DIRECTORY))
        assert (ErrorCode(removed.error_code).name, bool(removed.error_message)) == ("VOTER_NOT_FOUND", True)
        updated = await node.ask(
            UpdateRaftVoterRequest(ours, 1, 7, DIRECTORY, [UpdatedListener("A", "host", 1)])
        )
        assert ErrorCode(updated.error_code).name == "VOTER_NOT_FOUND"
        leader = updated.current_leader
        assert (leader.leader_id, leader.leader_epoch, leader.host, leader.port) == (1, 1, "host1", 9092)


@on_loop
async def test_a_request_for_another_cluster_is_rejected(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        for request in (
            AddRaftVoterRequest("another", 1000, 7, DIRECTORY),
            RemoveRaftVoterRequest("another", 7, DIRECTORY),
            UpdateRaftVoterRequest("another", 1, 7, DIRECTORY),
        ):
            assert (await node.ask(request)).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
