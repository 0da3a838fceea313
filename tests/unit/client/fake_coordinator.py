"""Handlers with which a fake broker coordinates one group and one transactional id; tests can change the responses."""

from functools import partial
from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.wire.consumer_protocol import assignment, subscription
from barnabas.wire.consumer_protocol.versioned import write
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import describe_producers as producers
from barnabas.wire.messages import describe_transactions as described
from barnabas.wire.messages import list_transactions as listed
from barnabas.wire.messages import write_txn_markers as markers
from barnabas.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from barnabas.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from barnabas.wire.schema import Message
from unit.client.fake_broker import NODE_ID, FakeBroker

GROUP = "readers"


class FakeCoordinator:
    """Group "readers" of the classic protocol, with one member that reads partition 0 of "t"."""

    def __init__(self, broker: FakeBroker) -> None:
        self.broker = broker
        self.is_there = True
        self.state = "Stable"
        self.metadata = write(subscription.ConsumerProtocolSubscription(topics=["t"]), 3)
        self.offsets: dict[TopicPartition, int] = {}
        self.error = ErrorCode.NONE  #: error of every partition in OffsetCommit and OffsetDelete
        for request, function in (
            (FindCoordinatorRequest, self._find),
            (ListGroupsRequest, self._list),
            (DescribeGroupsRequest, self._describe),
            (DeleteGroupsRequest, self._delete),
            (OffsetFetchRequest, self._fetch),
            (OffsetCommitRequest, self._commit),
            (OffsetDeleteRequest, self._delete_offsets),
        ):
            broker.serve(request, function)

    def _find(self, request: Any) -> Any:
        key = request.coordinator_keys[0] if request.coordinator_keys else request.key
        found = Coordinator(key, NODE_ID, "127.0.0.1", self.broker.port)
        return FindCoordinatorResponse(node_id=NODE_ID, port=self.broker.port, coordinators=[found])

    def _list(self, request: Any) -> Any:
        listed = ListedGroup(GROUP, "consumer", self.state, "classic")
        return ListGroupsResponse(groups=[listed] if self.is_there else [])

    def _describe(self, request: Any) -> Any:
        [name] = request.groups
        if not self.is_there or name != GROUP:
            return DescribeGroupsResponse(groups=[DescribedGroup(group_id=name, group_state="Dead")])
        given = assignment.ConsumerProtocolAssignment([assignment.TopicPartition("t", [0])])
        member = DescribedGroupMember("m1", None, "reader", "/10.0.0.1", self.metadata, write(given, 3))
        group = DescribedGroup(
            group_id=name,
            group_state=self.state,
            protocol_type="consumer",
            protocol_data="range",
            members=[member],
        )
        return DescribeGroupsResponse(groups=[group])

    def _delete(self, request: Any) -> Any:
        code = ErrorCode.NON_EMPTY_GROUP if self.state != "Empty" else ErrorCode.NONE
        return DeleteGroupsResponse(results=[DeletableGroupResult(request.groups_names[0], code)])

    def _fetch(self, request: Any) -> Any:
        requested = request.groups[0].topics if request.groups else request.topics
        names = self._requested_partitions(requested)
        old, new = [], []
        for tp, offset in names.items():
            partition = OffsetFetchResponsePartition(tp.partition, offset, 5, "m")
            old.append(OffsetFetchResponseTopic(tp.topic, [partition]))
            partitions = [OffsetFetchResponsePartitions(tp.partition, offset, 5, "m")]
            new.append(OffsetFetchResponseTopics(tp.topic, partitions=partitions))
        groups = [OffsetFetchResponseGroup(GROUP, new)] if request.groups else []
        return OffsetFetchResponse(topics=old, groups=groups)

    def _requested_partitions(self, topics: Any) -> dict[TopicPartition, int]:
        if topics is None:
            return self.offsets
        partitions = (TopicPartition(each.name, index) for each in topics for index in each.partition_indexes)
        return {tp: self.offsets.get(tp, -1) for tp in partitions}

    def _commit(self, request: Any) -> Any:
        topics = []
        for topic in request.topics:
            for each in topic.partitions:
                if not self.error:
                    self.offsets[TopicPartition(topic.name, each.partition_index)] = each.committed_offset
            answers = [
                OffsetCommitResponsePartition(each.partition_index, self.error) for each in topic.partitions
            ]
            topics.append(OffsetCommitResponseTopic(topic.name, partitions=answers))
        return OffsetCommitResponse(topics=topics)

    def _delete_offsets(self, request: Any) -> Any:
        topics = []
        for topic in request.topics:
            for each in topic.partitions:
                self.offsets.pop(TopicPartition(topic.name, each.partition_index), None)
            answers = [
                OffsetDeleteResponsePartition(each.partition_index, self.error) for each in topic.partitions
            ]
            topics.append(OffsetDeleteResponseTopic(topic.name, answers))
        return OffsetDeleteResponse(topics=topics)


def serve_transactions(broker: FakeBroker, coordinator_epoch: int = 3) -> None:
    """Serve transactional id "a", whose transaction began at offset 7 of partition 1 of "t"; "b" has none."""
    broker.create("t", 2)
    states = [listed.TransactionState("b", 8, "Empty"), listed.TransactionState("a", 7, "Ongoing")]
    ongoing = described.TransactionState(
        0, "a", "Ongoing", 60_000, 1_000, 7, 2, [described.TopicData("t", [1, 0])]
    )
    active = [
        producers.ProducerState(8, 0, 5, 900, -1, -1),
        producers.ProducerState(7, 2, 4, 1_000, coordinator_epoch, 7),
    ]
    found = [producers.TopicResponse("t", [producers.PartitionResponse(1, active_producers=active)])]
    written = [markers.WritableTxnMarkerTopicResult("t", [markers.WritableTxnMarkerPartitionResult(1)])]
    answers: dict[type[Message], Message] = {
        listed.ListTransactionsRequest: listed.ListTransactionsResponse(transaction_states=states),
        described.DescribeTransactionsRequest: described.DescribeTransactionsResponse(0, [ongoing]),
        producers.DescribeProducersRequest: producers.DescribeProducersResponse(0, found),
        markers.WriteTxnMarkersRequest: markers.WriteTxnMarkersResponse(
            [markers.WritableTxnMarkerResult(7, written)]
        ),
    }
    for request, answer in answers.items():
        broker.serve(request, partial(_same, answer))


def _same(answer: Message, request: Message) -> Message:
    return answer
