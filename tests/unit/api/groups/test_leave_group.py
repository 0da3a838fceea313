from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from support.loop import on_loop
from support.members import AT_ONCE, find_coordinator, join_and_sync
from support.nodes import running_node


@pytest.mark.parametrize("version", range(6))
def test_a_member_can_leave_only_once(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, **AT_ONCE) as node:
            await find_coordinator(node)
            member = await join_and_sync(node)
            for code in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
                left = await node.ask(member.leave(), version)
                error_codes = [left.error_code] if version < 3 else [each.error_code for each in left.members]
                assert error_codes == [code]

    scenario()


@on_loop
async def test_each_member_has_its_own_result(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AT_ONCE) as node:
        await find_coordinator(node)
        member = await join_and_sync(node)
        request = member.leave()
        request.members.insert(0, MemberIdentity(member_id="nobody"))
        request.members.append(MemberIdentity(group_instance_id="nobody"))
        left = await node.ask(request)
        assert left.error_code == ErrorCode.NONE
        assert [each.error_code for each in left.members] == [25, 0, 25]


@on_loop
async def test_a_missing_group_has_no_members(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AT_ONCE) as node:
        await find_coordinator(node)
        identity = MemberIdentity(member_id="m", group_instance_id="i")
        left = await node.ask(LeaveGroupRequest(group_id="g", members=[identity]))
        [answer] = left.members
        assert (answer.member_id, answer.group_instance_id, answer.error_code) == ("m", "i", 25)
        nameless = await node.ask(LeaveGroupRequest(group_id="", members=[identity]))
        assert (nameless.error_code, nameless.members) == (ErrorCode.INVALID_GROUP_ID, [])
