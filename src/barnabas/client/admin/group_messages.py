"""Groups and their offsets in messages of the protocol. No IO."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.client.core.errors import check, error_for
from barnabas.wire.codec import DecodeError
from barnabas.wire.consumer_protocol.versioned import read_assignment, read_subscription
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import consumer_group_describe as consumer
from barnabas.wire.messages import describe_groups as classic
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from barnabas.wire.messages.list_groups import ListGroupsResponse
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

#: Protocol type of Kafka's consumers.
_CONSUMER = "consumer"
_DEAD = "Dead"
_NO_OFFSET = -1


class GroupListing(NamedTuple):
    """A group in a list; type and state are empty if the broker is too old to return them."""

    group_id: str
    type: str
    protocol_type: str  #: empty for a group that has only committed offsets
    state: str


class MemberDescription(NamedTuple):
    """A member of a group; topics and partitions are known for Kafka's consumers."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    subscription: Sequence[str]
    assignment: Sequence[TopicPartition]


class GroupDescription(NamedTuple):
    """A group and its members."""

    group_id: str
    type: str
    protocol_type: str
    state: str
    assignor: str
    coordinator: int
    epoch: int | None  #: of a consumer group; None for a classic one
    members: Sequence[MemberDescription]


class LeavingMember(NamedTuple):
    """A member to remove: the group instance id of a static member, or a member id."""

    member_id: str
    instance_id: str | None = None

    def __str__(self) -> str:
        return f"'{self.instance_id or self.member_id}'"


class OffsetAndMetadata(NamedTuple):
    """A committed offset."""

    offset: int
    leader_epoch: int  #: -1 if unknown
    metadata: str


def parse_list_groups_response(response: ListGroupsResponse) -> list[GroupListing]:
    """Return the groups of one broker."""
    return [
        GroupListing(group.group_id, group.group_type, group.protocol_type, group.group_state)
        for group in response.groups
    ]


def classic_group_description(group: classic.DescribedGroup, coordinator: int) -> GroupDescription:
    """Return a classic group.

    :raises KafkaError: GROUP_ID_NOT_FOUND, which older brokers return as a dead group, or another error of the broker.
    """
    check(group.error_code, group.error_message or f"group '{group.group_id}'")
    if group.group_state == _DEAD:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no group '{group.group_id}'.")
    is_consumers = group.protocol_type == _CONSUMER
    return GroupDescription(
        group.group_id,
        "classic",
        group.protocol_type,
        group.group_state,
        group.protocol_data,
        coordinator,
        None,
        [_classic_member(member, is_consumers) for member in group.members],
    )


def _classic_member(member: classic.DescribedGroupMember, is_consumers: bool) -> MemberDescription:
    topics: Sequence[str] = ()
    partitions: Sequence[TopicPartition] = ()
    if is_consumers:
        try:  # the metadata of members is opaque, and empty during a rebalance
            topics = sorted(read_subscription(member.member_metadata).topics)
            partitions = _partitions(
                (topic.topic, topic.partitions)
                for topic in read_assignment(member.member_assignment).assigned_partitions
            )
        except DecodeError:
            pass
    return MemberDescription(
        member.member_id, member.group_instance_id, member.client_id, member.client_host, topics, partitions
    )


def consumer_group_description(group: consumer.DescribedGroup, coordinator: int) -> GroupDescription:
    """Return a consumer group (KIP-848).

    :raises KafkaError: GROUP_ID_NOT_FOUND, also for a group of another protocol, or another error of the broker.
    """
    check(group.error_code, group.error_message or f"group '{group.group_id}'")
    members = [
        MemberDescription(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            sorted(each.subscribed_topic_names),
            _partitions((topic.topic_name, topic.partitions) for topic in each.assignment.topic_partitions),
        )
        for each in group.members
    ]
    return GroupDescription(
        group.group_id,
        _CONSUMER,
        _CONSUMER,
        group.group_state,
        group.assignor_name,
        coordinator,
        group.group_epoch,
        members,
    )


def _partitions(topics: Iterable[tuple[str, Sequence[int]]]) -> list[TopicPartition]:
    return sorted(TopicPartition(name, index) for name, indexes in topics for index in indexes)


def offset_fetch_request(
    name: str, partitions: Iterable[TopicPartition] | None, *, stable: bool = False
) -> OffsetFetchRequest:
    """Return the request for committed offsets of these partitions, or of all, in the form of every version."""
    if partitions is None:
        return OffsetFetchRequest(
            name, None, [OffsetFetchRequestGroup(name, topics=None)], require_stable=stable
        )
    topics = _by_topic(partitions)
    return OffsetFetchRequest(
        name,
        [OffsetFetchRequestTopic(topic, indexes) for topic, indexes in topics.items()],
        [
            OffsetFetchRequestGroup(
                name,
                topics=[
                    OffsetFetchRequestTopics(topic, partition_indexes=indexes)
                    for topic, indexes in topics.items()
                ],
            )
        ],
        require_stable=stable,
    )


def parse_offset_fetch_response(
    response: OffsetFetchResponse,
) -> dict[TopicPartition, OffsetAndMetadata | KafkaError]:
    """Return the committed offsets that exist.

    :raises KafkaError: The error of the group.
    """
    group = response.groups[0] if response.groups else response
    check(group.error_code, "offsets cannot be fetched")
    offsets: dict[TopicPartition, OffsetAndMetadata | KafkaError] = {}
    for topic in group.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.partition_index)
            error = error_for(partition.error_code, f"the committed offset of {tp} cannot be fetched")
            if error is not None:
                offsets[tp] = error
            elif partition.committed_offset != _NO_OFFSET:
                offsets[tp] = OffsetAndMetadata(
                    partition.committed_offset, partition.committed_leader_epoch, partition.metadata or ""
                )
    return offsets


def offset_commit_request(
    name: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
) -> OffsetCommitRequest:
    """Return the request to commit offsets without being a member."""
    topics: defaultdict[str, list[OffsetCommitRequestPartition]] = defaultdict(list)
    for tp, committed in offsets.items():
        offset, epoch, metadata = (
            committed if isinstance(committed, OffsetAndMetadata) else OffsetAndMetadata(committed, -1, "")
        )
        topics[tp.topic].append(
            OffsetCommitRequestPartition(tp.partition, offset, epoch, committed_metadata=metadata)
        )
    return OffsetCommitRequest(
        name,
        topics=[
            OffsetCommitRequestTopic(topic, partitions=partitions) for topic, partitions in topics.items()
        ],
    )


def leave_group_request(name: str, members: Iterable[LeavingMember]) -> LeaveGroupRequest:
    """Return the request to remove members (KIP-345)."""
    reason = "removed by an administrator"
    return LeaveGroupRequest(
        name, "", [MemberIdentity(member.member_id, member.instance_id, reason) for member in members]
    )


def parse_leave_group_response(response: LeaveGroupResponse) -> dict[LeavingMember, KafkaError | None]:
    """Return the error of each member; None for success.

    :raises KafkaError: The error of the group.
    """
    check(response.error_code, "members are not removed")
    outcomes: dict[LeavingMember, KafkaError | None] = {}
    for result in response.members:
        member = LeavingMember(result.member_id, result.group_instance_id)
        outcomes[member] = error_for(result.error_code, f"member {member}")
    return outcomes


def offset_delete_request(name: str, partitions: Iterable[TopicPartition]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        name,
        [
            OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(index) for index in indexes])
            for topic, indexes in _by_topic(partitions).items()
        ],
    )


def parse_partition_errors(
    response: OffsetCommitResponse | OffsetDeleteResponse,
) -> dict[TopicPartition, KafkaError | None]:
    """Return the error of each partition; None for success.

    :raises KafkaError: The first error that a coordinator returns for all of them until it is ready.
    """
    what = "deleted" if isinstance(response, OffsetDeleteResponse) else "stored"
    errors: dict[TopicPartition, KafkaError | None] = {}
    for topic in response.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.partition_index)
            message = f"the committed offset of {tp} is not {what}"
            error = errors[tp] = error_for(partition.error_code, message)
            if error is not None and error.code in _OF_THE_COORDINATOR:
                raise error
    return errors


_OF_THE_COORDINATOR = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for tp in partitions:
        topics[tp.topic].append(tp.partition)
    return dict(topics)
