from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode
from support.loop import on_loop
from support.members import AT_ONCE, classic_join_request, find_coordinator, join
from support.nodes import running_node


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins_and_becomes_the_leader(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, **AT_ONCE) as node:
            await find_coordinator(node)
            joined = (await join(node, version=version)).joined
            assert joined.member_id.startswith("test-")
            assert joined.leader == joined.member_id
            assert (joined.generation_id, joined.protocol_name, joined.skip_assignment) == (1, "range", False)
            assert joined.protocol_type == ("consumer" if version >= 7 else None)
            [member] = joined.members
            assert (member.member_id, bytes(member.metadata)) == (joined.member_id, b"metadata")

    scenario()


@pytest.mark.parametrize(("version", "asks_for_id"), [(3, False), (4, True), (9, True)])
def test_since_version_4_a_new_member_gets_its_id_first(
    tmp_path: Path, version: int, asks_for_id: bool
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, **AT_ONCE) as node:
            await find_coordinator(node)
            first = await node.ask(classic_join_request(), version)
            assert first.member_id
            assert (first.error_code == ErrorCode.MEMBER_ID_REQUIRED) is asks_for_id

    scenario()


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_an_error_has_the_member_id_and_no_protocol(
    tmp_path: Path, fields: dict[str, object], code: ErrorCode
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, **AT_ONCE) as node:
            await find_coordinator(node)
            for version, protocol_name in ((6, ""), (7, None)):
                refused = await node.ask(classic_join_request(**fields), version)  # type: ignore[arg-type]
                assert refused.error_code == code
                assert refused.member_id == fields.get("member_id", "")
                assert refused.protocol_name == protocol_name

    scenario()


@on_loop
async def test_without_the_offsets_topic_the_coordinator_is_not_available(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        assert (await node.ask(classic_join_request())).error_code == ErrorCode.NOT_COORDINATOR


@on_loop
async def test_a_member_with_the_longest_names_can_join(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AT_ONCE) as node:
        await find_coordinator(node)
        joined = await node.ask(classic_join_request("g" * 32_767, group_instance_id="\N{SNOWMAN}" * 10_922))
        assert joined.error_code == ErrorCode.NONE
        assert len(joined.member_id.encode()) < 32_767
