from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode
from support.loop import on_loop
from support.members import AT_ONCE, find_coordinator, join
from support.nodes import running_node


@pytest.mark.parametrize("version", range(6))
def test_the_leader_sends_the_assignment_of_each_member(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, **AT_ONCE) as node:
            await find_coordinator(node)
            member = await join(node)
            synced = await node.ask(member.sync(b"a-0"), version)
            assert (synced.error_code, bytes(synced.assignment)) == (0, b"a-0")
            assert synced.protocol_name == ("range" if version >= 5 else None)
            again = await node.ask(member.sync(b"other"), version)
            assert bytes(again.assignment) == b"a-0"

    scenario()


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("group_id", "", ErrorCode.INVALID_GROUP_ID),
        ("group_id", "other", ErrorCode.UNKNOWN_MEMBER_ID),
        ("member_id", "nobody", ErrorCode.UNKNOWN_MEMBER_ID),
        ("generation_id", 0, ErrorCode.ILLEGAL_GENERATION),
        ("protocol_type", None, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("protocol_type", "connect", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("protocol_name", None, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("protocol_name", "sticky", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_wrong_generation_is_an_error(tmp_path: Path, field: str, value: object, code: ErrorCode) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, **AT_ONCE) as node:
            await find_coordinator(node)
            request = (await join(node)).sync()
            setattr(request, field, value)
            assert (await node.ask(request)).error_code == code

    scenario()
