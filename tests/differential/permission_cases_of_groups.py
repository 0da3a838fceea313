"""What is asked about classic groups of which only one is mine."""

from typing import NamedTuple

from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest
from barnabas.wire.schema import Message


class Case(NamedTuple):
    """A request, and the version at which it is sent."""

    request: Message
    version: int
    #: what is asked for differs between the brokers, or changes things: only who is refused is compared
    refusals_only: bool = False


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
    "DeleteGroups": Case(DeleteGroupsRequest(["other-group", "nobodys"]), 2),
}
