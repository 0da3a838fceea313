from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from support.loop import on_loop
from support.members import AT_ONCE, find_coordinator, join_and_sync
from support.nodes import running_node


@pytest.mark.parametrize("version", range(3))
def test_a_group_without_members_is_deleted(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, **AT_ONCE) as node:
            await find_coordinator(node)
            member = await join_and_sync(node)
            await join_and_sync(node, "other")
            codes = []
            for _ in range(3):
                deleted = await node.ask(DeleteGroupsRequest(groups_names=["g", "g", "other"]), version)
                codes.append([(result.group_id, result.error_code) for result in deleted.results])
                await node.ask(member.leave())
            in_use = ("other", ErrorCode.NON_EMPTY_GROUP)
            assert codes == [
                [("g", ErrorCode.NON_EMPTY_GROUP), in_use],
                [("g", ErrorCode.NONE), in_use],
                [("g", ErrorCode.GROUP_ID_NOT_FOUND), in_use],
            ]
            assert [group.group_id for group in (await node.ask(ListGroupsRequest())).groups] == ["other"]

    scenario()
