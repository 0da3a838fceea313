"""Groups on a node: restarts and timeouts."""

import asyncio
from pathlib import Path

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from support.loop import in_virtual_time, on_loop
from support.members import AT_ONCE, classic_join_request, find_coordinator, join, join_and_sync
from support.memory_store import MemoryStore
from support.nodes import running_node


@on_loop
async def test_members_and_assignments_survive_a_restart(tmp_path: Path) -> None:
    store = MemoryStore()
    async with running_node(tmp_path, store, **AT_ONCE) as node:
        await find_coordinator(node)
        member = await join_and_sync(node)
        await join(node, "unsettled")
    async with running_node(tmp_path, store, **AT_ONCE) as node:
        await find_coordinator(node)
        [group] = (await node.ask(DescribeGroupsRequest(groups=["g"]))).groups
        assert (group.group_state, group.protocol_data) == ("Stable", "range")
        assert [each.member_id for each in group.members] == [member.member_id]
        assert bytes(group.members[0].member_assignment) == b"work"
        assert (await node.ask(member.heartbeat())).error_code == ErrorCode.NONE
        assert bytes((await node.ask(member.sync(b"other"))).assignment) == b"work"
        listed = (await node.ask(ListGroupsRequest())).groups
        assert {each.group_id: each.group_state for each in listed} == {"g": "Stable", "unsettled": "Empty"}


@on_loop
async def test_a_deleted_group_stays_deleted(tmp_path: Path) -> None:
    store = MemoryStore()
    async with running_node(tmp_path, store, **AT_ONCE) as node:
        await find_coordinator(node)
        await node.ask((await join_and_sync(node)).leave())
        await node.ask(DeleteGroupsRequest(groups_names=["g"]))
    async with running_node(tmp_path, store, **AT_ONCE) as node:
        await find_coordinator(node)
        assert (await node.ask(ListGroupsRequest())).groups == []


@in_virtual_time
async def test_a_member_that_disconnects_while_joining_expires_with_its_session(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, **AT_ONCE) as node:
        await find_coordinator(node)
        member = await join_and_sync(node)
        waiting = asyncio.ensure_future(node.ask(classic_join_request(), 3))
        await asyncio.sleep(0.1)
        waiting.cancel()
        assert (await node.ask(member.heartbeat())).error_code == ErrorCode.REBALANCE_IN_PROGRESS
        again = await node.ask(classic_join_request(member_id=member.member_id))
        assert len(again.members) == 2
        await asyncio.sleep(11)
        [group] = (await node.ask(DescribeGroupsRequest(groups=["g"]))).groups
        assert group.members == []
