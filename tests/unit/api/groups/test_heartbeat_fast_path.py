"""Heartbeats on the fast path give the same responses as without it."""

import random
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from support.acls import ALICE, AUTHORIZED
from support.fast_paths import Pair
from support.loop import on_loop
from support.members import AT_ONCE, find_coordinator, join_and_sync
from support.nodes import RunningNode, frame_of, response_of, running_node


async def prepare(node: RunningNode) -> None:
    await find_coordinator(node)
    await join_and_sync(node)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("pair"), prepare, **AT_ONCE)
    yield made
    made.close()


def member_id(node: RunningNode) -> str:
    """Return the id of the only member of group g."""
    group: Any = node.broker.groups.runner("g").shard.groups["g"]
    (found,) = group.members
    return str(found)


@pytest.mark.parametrize("version", range(5))
def test_any_request_has_the_same_result_on_both_paths(pair: Pair, version: int) -> None:
    rng, known = random.Random(version), member_id(pair.fast)
    assert known == member_id(pair.decoding)
    answered_count, accepted_count = pair.answered_in_turn_count, 0
    for _ in range(100):
        request = HeartbeatRequest(
            group_id=rng.choice(["g", "g", "g", "other", "", "l" * 200]),
            generation_id=rng.choice([1, 1, 1, 2, -1]),
            member_id=rng.choice([known, known, known, "", "m" * 200]),
        )
        if version >= 3:
            request.group_instance_id = rng.choice([None, None, None, "", "one"])
        frame = frame_of(request, version)
        if rng.random() < 0.2:
            frame = frame[: len(frame) - rng.randrange(20)] + rng.choice([b"", b"\0", b"\0\0\0", b"x"])
        fast, decoded = pair.outcomes(frame)
        assert fast == decoded, frame
        if isinstance(fast, tuple) and fast[0] == answer_of(version):
            accepted_count += 1
    assert pair.answered_in_turn_count - answered_count > 50
    assert accepted_count > 5


def answer_of(version: int) -> bytes:
    """Return the complete response to a heartbeat in time."""
    body = bytes(4 if version else 0) + bytes(2) + (b"\0" if version >= 4 else b"")
    header = (7).to_bytes(4, "big") + (b"\0" if version >= 4 else b"")
    return (len(header) + len(body)).to_bytes(4, "big") + header + body


@on_loop
async def test_unauthorized_groups_are_errors(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as node:
        node.connection.principal = ALICE
        response = await node.ask(HeartbeatRequest(group_id="g"))
        assert response.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


@on_loop
async def test_a_request_followed_by_thousands_of_bytes_is_answered(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AT_ONCE) as node:
        await find_coordinator(node)
        member = await join_and_sync(node)
        frame = frame_of(member.heartbeat(), 4) + bytes(20_000)
        assert response_of(HeartbeatResponse, 4, await node.send(frame) or b"").error_code == ErrorCode.NONE


async def unstored(node: RunningNode) -> bytes:
    """Send a heartbeat to a group whose records must be flushed but are not yet."""
    await find_coordinator(node)
    member = await join_and_sync(node)
    partition = node.broker.groups.runner("g").log.partition
    partition.reconfigure(replace(partition.log.config, flush_messages=1))
    return frame_of(member.heartbeat(), 4)


@on_loop
async def test_the_response_waits_until_the_groups_records_are_stored(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AT_ONCE) as node:
        _, answer = node.begin(await unstored(node))
        assert isinstance(answer, Coroutine)
        parts = await answer
        assert b"".join(parts or []) == answer_of(4)
        log = node.broker.groups.runner("g").log.partition.log
        assert log.recovery_point == log.log_end_offset


@on_loop
async def test_the_response_is_an_error_when_the_records_cannot_be_stored(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AT_ONCE) as node:
        frame = await unstored(node)
        log = node.broker.groups.runner("g").log.partition.log
        log.sync = _fail  # type: ignore[method-assign]
        response = response_of(HeartbeatResponse, 4, await node.send(frame) or b"")
        assert response.error_code == ErrorCode.NOT_COORDINATOR


def _fail(*_: Any) -> None:
    raise OSError(5, "Input/output error")
