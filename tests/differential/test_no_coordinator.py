"""Responses to groups and transactions before FindCoordinator has created the topics of coordinators."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.list_transactions import ListTransactionsRequest
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.messages.sync_group import SyncGroupRequest
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.wire.schema import Message
from differential.batches import Batch
from differential.brokers import SETTINGS, pair_of_brokers
from differential.sequences import create, topic
from differential.symbols import Name, TopicId
from differential.world import World

A: Any = Name("a")
A_ID: Any = TopicId("a")
BATCH: Any = Batch(flaw="transactional")
PROTOCOLS = [JoinGroupRequestProtocol(name="range", metadata=b"m")]
ADDED = [AddPartitionsToTxnTopic(name=A, partitions=[0])]

REQUESTS: dict[str, Message] = {
    "JoinGroup": JoinGroupRequest("g", 10_000, protocol_type="consumer", protocols=PROTOCOLS),
    "JoinGroup with an id": JoinGroupRequest(
        "g", 10_000, 10_000, "m", protocol_type="consumer", protocols=PROTOCOLS
    ),
    "SyncGroup": SyncGroupRequest("g", 1, "m", protocol_type="consumer", protocol_name="range"),
    "Heartbeat": HeartbeatRequest("g", 1, "m"),
    "LeaveGroup": LeaveGroupRequest("g", "m", [MemberIdentity("m"), MemberIdentity("n")]),
    "OffsetCommit": OffsetCommitRequest(
        "g", topics=[OffsetCommitRequestTopic(A, A_ID, [OffsetCommitRequestPartition(0, 5)])]
    ),
    "OffsetCommit of a member": OffsetCommitRequest(
        "g", 1, "m", topics=[OffsetCommitRequestTopic(A, A_ID, [OffsetCommitRequestPartition(0, 5)])]
    ),
    "OffsetCommit of nothing": OffsetCommitRequest("g"),
    "OffsetFetch": OffsetFetchRequest(
        "g",
        [OffsetFetchRequestTopic(A, [0])],
        [OffsetFetchRequestGroup("g", topics=[OffsetFetchRequestTopics(A, A_ID, [0])])],
    ),
    "OffsetFetch of all topics": OffsetFetchRequest("g", None, [OffsetFetchRequestGroup("g", topics=None)]),
    "OffsetDelete": OffsetDeleteRequest(
        "g", [OffsetDeleteRequestTopic(A, [OffsetDeleteRequestPartition(0)])]
    ),
    "DescribeGroups": DescribeGroupsRequest(["g", "h"]),
    "ListGroups": ListGroupsRequest(),
    "DeleteGroups": DeleteGroupsRequest(["g", "h"]),
    "ConsumerGroupHeartbeat": ConsumerGroupHeartbeatRequest(
        "g", "m", rebalance_timeout_ms=10_000, subscribed_topic_names=[A], topic_partitions=[]
    ),
    "ConsumerGroupDescribe": ConsumerGroupDescribeRequest(["g", "h"]),
    "InitProducerId": InitProducerIdRequest("x", 60_000),
    "AddPartitionsToTxn": AddPartitionsToTxnRequest(
        [AddPartitionsToTxnTransaction("x", 0, 0, False, ADDED)], "x", 0, 0, ADDED
    ),
    "AddPartitionsToTxn that wants to know": AddPartitionsToTxnRequest(
        [AddPartitionsToTxnTransaction("x", 0, 0, True, ADDED)], "x", 0, 0, ADDED
    ),
    "AddOffsetsToTxn": AddOffsetsToTxnRequest("x", 0, 0, "g"),
    "EndTxn": EndTxnRequest("x", 0, 0, True),
    "TxnOffsetCommit": TxnOffsetCommitRequest(
        "x", "g", 0, 0, topics=[TxnOffsetCommitRequestTopic(A, [TxnOffsetCommitRequestPartition(0, 5)])]
    ),
    "DescribeTransactions": DescribeTransactionsRequest(["x", "y"]),
    "ListTransactions": ListTransactionsRequest(),
    "Produce in a transaction": ProduceRequest(
        "x", -1, 10_000, [TopicProduceData(A, A_ID, [PartitionProduceData(0, BATCH)])]
    ),
}
#: Fields that cannot be set in every version.
FIRST_VERSIONS = {"OffsetFetch of all topics": 2}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with (
        tempfile.TemporaryDirectory(prefix="no-coordinator-") as home,
        pair_of_brokers(Path(home), SETTINGS, with_coordinators=False) as pair,
        pair.world() as fresh,
    ):
        assert fresh.exchange(*create(topic("a"))) == []
        yield fresh


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_before_find_coordinator_have_the_same_responses_as_in_kafka(
    world: World, name: str
) -> None:
    request = REQUESTS[name]
    versions = world.pair.apis[request.API_KEY].versions
    for version in range(FIRST_VERSIONS.get(name, versions.first), versions.last + 1):
        differences = world.exchange(request, version)
        assert not differences, "\n".join(map(str, differences))
