from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from support.loop import on_loop
from support.members import AT_ONCE, find_coordinator, join, join_and_sync
from support.nodes import running_node

NOT_REQUESTED = -(2**31)


@pytest.mark.parametrize("version", range(7))
def test_a_stable_group_is_described_with_assignments(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, **AT_ONCE) as node:
            await find_coordinator(node)
            await join_and_sync(node)
            request = DescribeGroupsRequest(groups=["g"], include_authorized_operations=True)
            [group] = (await node.ask(request, version)).groups
            assert (group.error_code, group.group_id, group.group_state) == (0, "g", "Stable")
            assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
            [member] = group.members
            assert (member.client_id, member.client_host) == ("test", "/client")
            assert (bytes(member.member_metadata), bytes(member.member_assignment)) == (b"metadata", b"work")
            assert (group.authorized_operations > 0) is (version >= 3)

    scenario()


@on_loop
async def test_a_rebalancing_group_is_described_with_members_only(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AT_ONCE) as node:
        await find_coordinator(node)
        await join(node)
        [group] = (await node.ask(DescribeGroupsRequest(groups=["g"]))).groups
        assert (group.group_state, group.protocol_data) == ("CompletingRebalance", "")
        assert (bytes(group.members[0].member_metadata), group.authorized_operations) == (b"", NOT_REQUESTED)


@on_loop
async def test_a_missing_group_is_dead_or_an_error_in_newer_versions(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AT_ONCE) as node:
        await find_coordinator(node)
        [group] = (await node.ask(DescribeGroupsRequest(groups=["g"]), 5)).groups
        assert (group.error_code, group.group_state) == (0, "Dead")
        [group] = (await node.ask(DescribeGroupsRequest(groups=["g"]), 6)).groups
        assert (group.error_code, group.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
        assert group.error_message == "Group g not found."
