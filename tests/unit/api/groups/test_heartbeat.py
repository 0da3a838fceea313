from pathlib import Path

import pytest

from barnabas.api.groups.heartbeat import error_response
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from support.loop import on_loop
from support.members import AT_ONCE, find_coordinator, join_and_sync
from support.nodes import running_node


@pytest.mark.parametrize("version", range(5))
def test_a_heartbeat_keeps_the_member_alive(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, **AT_ONCE) as node:
            await find_coordinator(node)
            member = await join_and_sync(node)
            assert (await node.ask(member.heartbeat(), version)).error_code == ErrorCode.NONE

    scenario()


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("group_id", "", ErrorCode.INVALID_GROUP_ID),
        ("group_id", "other", ErrorCode.UNKNOWN_MEMBER_ID),
        ("member_id", "nobody", ErrorCode.UNKNOWN_MEMBER_ID),
        ("generation_id", 2, ErrorCode.ILLEGAL_GENERATION),
        ("group_instance_id", "nobody", ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_client_outside_the_generation_gets_an_error(
    tmp_path: Path, field: str, value: object, code: ErrorCode
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, **AT_ONCE) as node:
            await find_coordinator(node)
            request = (await join_and_sync(node)).heartbeat()
            setattr(request, field, value)
            assert (await node.ask(request)).error_code == code

    scenario()


def test_heartbeats_succeed_while_the_coordinator_loads() -> None:
    request = HeartbeatRequest(group_id="g")
    assert (
        error_response(request, KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)).error_code
        == ErrorCode.NONE
    )
    assert (
        error_response(request, KafkaError(ErrorCode.NOT_COORDINATOR)).error_code == ErrorCode.NOT_COORDINATOR
    )
