"""Members of classic groups as clients of a node."""

import asyncio
from dataclasses import dataclass

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from support.nodes import RunningNode

#: Settings of a node with one offsets partition and no initial rebalance delay.
AT_ONCE = {"offsets_topic_num_partitions": "1", "group_initial_rebalance_delay_ms": "0"}


async def find_coordinator(node: RunningNode) -> None:
    """Create and load the offsets topic."""
    await node.ask(FindCoordinatorRequest(coordinator_keys=["g"]))
    while node.broker.groups.is_loading:
        await asyncio.sleep(0)


def classic_join_request(group_id: str = "g", member_id: str = "", **fields: object) -> JoinGroupRequest:
    """Build a JoinGroup request of a consumer that supports `range`."""
    defaults: dict[str, object] = {
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"metadata")],
    }
    return JoinGroupRequest(group_id=group_id, member_id=member_id, **(defaults | fields))  # type: ignore[arg-type]


@dataclass
class GroupMember:
    """The only member of a group, which is assigned `work`."""

    node: RunningNode
    group_id: str
    joined: JoinGroupResponse

    @property
    def member_id(self) -> str:
        return self.joined.member_id

    def sync(self, assignment: bytes = b"work") -> SyncGroupRequest:
        assignments = [SyncGroupRequestAssignment(member_id=self.member_id, assignment=assignment)]
        return SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.joined.generation_id,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )

    def heartbeat(self) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self.group_id, generation_id=self.joined.generation_id, member_id=self.member_id
        )

    def leave(self) -> LeaveGroupRequest:
        identity = MemberIdentity(member_id=self.member_id, reason="done")
        return LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id, members=[identity])


async def join(node: RunningNode, group_id: str = "g", version: int | None = None) -> GroupMember:
    """Return a new member that has joined, but not synced."""
    joined = await node.ask(classic_join_request(group_id), version)
    if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        joined = await node.ask(classic_join_request(group_id, joined.member_id), version)
    assert joined.error_code == ErrorCode.NONE, ErrorCode(joined.error_code)
    return GroupMember(node, group_id, joined)


async def join_and_sync(node: RunningNode, group_id: str = "g") -> GroupMember:
    """Return a new member with an assignment."""
    member = await join(node, group_id)
    assert (await node.ask(member.sync())).error_code == ErrorCode.NONE
    return member
