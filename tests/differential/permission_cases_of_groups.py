"""Requests about groups of which only one is "mine"."""

from typing import Any, NamedTuple

from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest
from barnabas.wire.schema import Message
from differential.symbols import Name


class Case(NamedTuple):
    """A request and its version."""

    request: Message
    version: int
    #: the response differs between brokers or changes state, so only authorization errors are compared
    refusals_only: bool = False


def _heartbeat(group: str, *topics: str, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    """Build a heartbeat with which a member joins, or joins again."""
    names: list[Any] = [Name(name) for name in topics]
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=MEMBER,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=names,
        topic_partitions=[],
        **fields,
    )


#: The member of each consumer group. Sessions expire soon; the member joins again before a test needs it.
MEMBER = "member"
JOINING = [(_heartbeat("mine-consumers", "mine"), 1), (_heartbeat("mine-mixed", "mine", "other"), 1)]

CONSUMER_GROUP_CASES: dict[str, Case] = {
    "ConsumerGroupHeartbeat": Case(_heartbeat("mine-consumers", "mine"), 1),
    "ConsumerGroupHeartbeat of nobody": Case(_heartbeat("mine-consumers", "mine", member_epoch=-1), 0),
    "ConsumerGroupHeartbeat of another's group": Case(_heartbeat("other-consumers", "mine"), 0),
    "ConsumerGroupHeartbeat of topics that are not mine": Case(
        _heartbeat("mine-consumers", "mine", "other"), 1
    ),
    "ConsumerGroupHeartbeat of a topic that is not there": Case(_heartbeat("mine-new", "mine-missing"), 1),
    "ConsumerGroupHeartbeat of another's topic that is not there": Case(
        _heartbeat("mine-consumers", "other-missing"), 1
    ),
    "ConsumerGroupHeartbeat without topics": Case(_heartbeat("mine-new"), 1),
    "ConsumerGroupDescribe": Case(
        ConsumerGroupDescribeRequest(
            ["mine-consumers", "mine-mixed", "other-consumers", "mine-missing", ""],
            include_authorized_operations=True,
        ),
        1,
    ),
    "ConsumerGroupDescribe without operations": Case(ConsumerGroupDescribeRequest(["mine-consumers"]), 0),
}

GROUP_CASES: dict[str, Case] = {
    "JoinGroup of mine": Case(JoinGroupRequest(group_id="mine-group", session_timeout_ms=10_000), 9),
    "JoinGroup of another's": Case(JoinGroupRequest(group_id="other-group", member_id="m"), 6),
    "SyncGroup of mine": Case(SyncGroupRequest(group_id="mine-group"), 4),
    "SyncGroup of another's": Case(SyncGroupRequest(group_id="other-group"), 5),
    "Heartbeat of mine": Case(HeartbeatRequest(group_id="mine-group", member_id="m"), 4),
    "Heartbeat of another's": Case(HeartbeatRequest(group_id="other-group", member_id="m"), 4),
    "LeaveGroup of mine": Case(LeaveGroupRequest(group_id="mine-group", members=[MemberIdentity("m")]), 5),
    "LeaveGroup of another's": Case(LeaveGroupRequest(group_id="other-group", member_id="m"), 2),
    "DescribeGroups": Case(DescribeGroupsRequest(["mine-group", "other-group"], True), 5),
    "ListGroups": Case(ListGroupsRequest(), 5),
    "SyncGroup of mine, with a protocol": Case(
        SyncGroupRequest(
            group_id="mine-group", member_id="m", protocol_type="consumer", protocol_name="range"
        ),
        5,
    ),
    "LeaveGroup of members of mine": Case(
        LeaveGroupRequest(group_id="mine-group", members=[MemberIdentity("m"), MemberIdentity("", "i")]), 3
    ),
    "DescribeGroups that are not there": Case(DescribeGroupsRequest(["mine-none", "other-none"], True), 6),
    "ListGroups of all states": Case(ListGroupsRequest(), 3),
    "DeleteGroups of mine": Case(DeleteGroupsRequest(["mine-none", "other-none"]), 1),
    "DeleteGroups": Case(DeleteGroupsRequest(["other-group", "nobodys"]), 2),
}
