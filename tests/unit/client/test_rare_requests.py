"""Voters, leader epochs, pages of partitions, leaving members: building requests and parsing responses."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.cluster_control import QuorumDescription
from barnabas.client.admin.group_messages import (
    LeavingMember,
    leave_group_request,
    parse_leave_group_response,
)
from barnabas.client.admin.leader_epochs import EpochEnd, list_epoch_ends
from barnabas.client.admin.topic_partitions import describe_topic_partitions
from barnabas.client.admin.voters import QuorumVoter, Voters
from barnabas.client.core.address import BrokerAddress
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import describe_topic_partitions as pages
from barnabas.wire.messages import offset_for_leader_epoch as epochs
from barnabas.wire.messages.add_raft_voter import AddRaftVoterResponse
from barnabas.wire.messages.leave_group import LeaveGroupResponse, MemberResponse
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterResponse
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterResponse

VOTER = QuorumVoter(3, bytes(range(16)))
ENDPOINTS = {"CONTROLLER": BrokerAddress("h", 1)}
QUORUM = QuorumDescription(1, 7, 100, (), ())


class FakeCluster:
    """Returns given responses in turn, and records requests; broker 1 leads all but `gone`."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[Any] = []
        self.metadata = SimpleNamespace(cluster_id="c")
        self.request_timeout_ms = 1

    async def send(self, request: Any, *_: Any, **__: Any) -> Any:
        self.requests.append(request)
        return self.answers.pop(0)

    async def leader(self, tp: TopicPartition) -> int:
        if tp.topic == "gone":
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return 1


def cluster_of(*answers: Any) -> Any:
    return FakeCluster(*answers)


def test_a_voter_is_added_removed_and_updated_by_directory_id() -> None:
    cluster = cluster_of(AddRaftVoterResponse(), RemoveRaftVoterResponse(), UpdateRaftVoterResponse())
    voters = Voters(cluster)
    asyncio.run(voters.add(VOTER, ENDPOINTS))
    asyncio.run(voters.remove(VOTER))
    asyncio.run(voters.update(VOTER, ENDPOINTS, QUORUM))
    added, removed, updated = cluster.requests
    for request in (added, removed, updated):
        assert (request.cluster_id, request.voter_id, request.voter_directory_id) == ("c", *VOTER)
    assert [(each.name, each.host, each.port) for each in added.listeners] == [("CONTROLLER", "h", 1)]
    assert (updated.current_leader_epoch, len(updated.listeners)) == (7, 1)


def test_a_rejected_voter_has_a_reason() -> None:
    refused = RemoveRaftVoterResponse(error_code=ErrorCode.VOTER_NOT_FOUND, error_message="no such voter")
    with pytest.raises(KafkaError, match="no such voter"):
        asyncio.run(Voters(cluster_of(refused)).remove(VOTER))
    assert str(VOTER) == "3-AAECAwQFBgcICQoLDA0ODw"


def test_an_epochs_end_offset_comes_from_the_leader_with_errors_per_partition() -> None:
    found = [
        epochs.EpochEndOffset(partition=0, leader_epoch=2, end_offset=9),
        epochs.EpochEndOffset(ErrorCode.NOT_LEADER_OR_FOLLOWER, 1),
    ]
    cluster = cluster_of(
        epochs.OffsetForLeaderEpochResponse(topics=[epochs.OffsetForLeaderTopicResult("t", found)])
    )
    requested_epochs = {TopicPartition("t", 0): 2, TopicPartition("t", 1): 3, TopicPartition("gone", 0): 0}
    ends: Any = asyncio.run(list_epoch_ends(cluster, requested_epochs))
    assert ends[TopicPartition("t", 0)] == EpochEnd(2, 9)
    assert ends[TopicPartition("t", 1)].code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ends[TopicPartition("gone", 0)].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    [request] = cluster.requests
    assert [(each.partition, each.leader_epoch) for each in request.topics[0].partitions] == [(0, 2), (1, 3)]


def page(*indexes: int, following: tuple[str, int] | None = None) -> pages.DescribeTopicPartitionsResponse:
    partitions = [
        pages.DescribeTopicPartitionsResponsePartition(
            partition_index=index,
            leader_id=1,
            replica_nodes=[1, 2],
            isr_nodes=[1],
            eligible_leader_replicas=[2],
        )
        for index in indexes
    ]
    topic = pages.DescribeTopicPartitionsResponseTopic(name="t", partitions=partitions)
    cursor = None if following is None else pages.ResponseCursor(*following)
    return pages.DescribeTopicPartitionsResponse(topics=[topic], next_cursor=cursor)


def test_partitions_are_described_page_by_page() -> None:
    cluster = cluster_of(page(0, 1, following=("t", 2)), page(2))
    found: Any = asyncio.run(describe_topic_partitions(cluster, ["t"], 2))
    assert [each.partition for each in found["t"]] == [0, 1, 2]
    assert (found["t"][0].isr, found["t"][0].eligible, found["t"][0].last_known_eligible) == ((1,), (2,), ())
    cursors = [
        request.cursor and (request.cursor.topic_name, request.cursor.partition_index)
        for request in cluster.requests
    ]
    assert cursors == [None, ("t", 2)]


def test_a_topic_that_cannot_be_described_has_an_error() -> None:
    refused = pages.DescribeTopicPartitionsResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "t")
    cluster = cluster_of(pages.DescribeTopicPartitionsResponse(topics=[refused]))
    found: Any = asyncio.run(describe_topic_partitions(cluster, ["t"]))
    assert found["t"].code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_members_leave_by_member_or_instance_id() -> None:
    members = [LeavingMember("", "worker-3"), LeavingMember("m-1")]
    request = leave_group_request("g", members)
    assert [(each.member_id, each.group_instance_id) for each in request.members] == [
        ("", "worker-3"),
        ("m-1", None),
    ]
    answered = [MemberResponse("", "worker-3"), MemberResponse("m-1", None, ErrorCode.UNKNOWN_MEMBER_ID)]
    outcomes = parse_leave_group_response(LeaveGroupResponse(members=answered))
    assert outcomes[members[0]] is None
    assert str(outcomes[members[1]]) == "UNKNOWN_MEMBER_ID: member 'm-1'"
    with pytest.raises(KafkaError):
        parse_leave_group_response(LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
