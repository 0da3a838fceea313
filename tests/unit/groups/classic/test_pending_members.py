"""The number of pending member ids is bounded (KIP-394)."""

from typing import Any

import pytest

from barnabas.groups.classic import join as module
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.join import Join, JoiningClient
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from support.group_worlds import GroupWorld

GROUP_MAX, ALL_MAX = 5, 8


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> GroupWorld:
    monkeypatch.setattr(module, "GROUP_PENDING_MEMBERS_MAX", GROUP_MAX)
    monkeypatch.setattr(module, "PENDING_MEMBERS_MAX", ALL_MAX)
    return GroupWorld()


def join(
    world: GroupWorld, group_id: str = "g", member_id: str = "", client_id: str = "c", version: int = 9
) -> Any:
    request = JoinGroupRequest(
        group_id=group_id,
        member_id=member_id,
        session_timeout_ms=45_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    client = JoiningClient(client_id, "/h", version)
    return world.ask(lambda shard, result, pending: shard.join_group(result, Join(request, client, pending)))


def given_id(world: GroupWorld, group_id: str = "g") -> str:
    answer = join(world, group_id)
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    return str(answer.member_id)


def pending(world: GroupWorld, group_id: str = "g") -> list[str]:
    group = world.shard.groups[group_id]
    assert isinstance(group, ClassicGroup)
    return list(group.pending_members)


def test_the_oldest_pending_members_of_a_group_are_removed_with_their_timers(world: GroupWorld) -> None:
    ids = [given_id(world) for _ in range(GROUP_MAX + 3)]
    assert pending(world) == ids[3:]
    assert len(world.timers) == GROUP_MAX


def test_the_oldest_pending_members_of_all_groups_are_removed(world: GroupWorld) -> None:
    for number in range(ALL_MAX + 3):
        given_id(world, f"g{number}")
    assert [len(pending(world, f"g{number}")) for number in range(ALL_MAX + 3)] == [0] * 3 + [1] * ALL_MAX
    assert len(world.timers) == ALL_MAX


def test_a_removed_pending_member_must_join_again(world: GroupWorld) -> None:
    first, *_ = [given_id(world) for _ in range(GROUP_MAX + 1)]
    refused = join(world, member_id=first)
    assert isinstance(refused, KafkaError)
    assert refused.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert given_id(world)


def test_members_that_have_joined_are_no_longer_pending(world: GroupWorld) -> None:
    for _ in range(GROUP_MAX + 3):
        join(world, member_id=given_id(world))
    group = world.shard.groups["g"]
    assert isinstance(group, ClassicGroup)
    assert (len(group.members), group.pending_members) == (GROUP_MAX + 3, {})


def test_a_rebalance_does_not_wait_for_a_removed_pending_member(world: GroupWorld) -> None:
    """Members of other groups displace the one that this group waits for."""
    join(world, version=3)
    first = world.last_request
    world.pass_time(3_000)
    first_id = world.answers[first].member_id
    given_id(world)
    join(world, version=3)
    second = world.last_request
    join(world, member_id=first_id, version=3)
    assert second not in world.answers
    for number in range(ALL_MAX):
        given_id(world, f"other-{number}")
    assert pending(world) == []
    assert world.answers[second].error_code == ErrorCode.NONE


def test_a_client_id_is_truncated_in_member_ids(world: GroupWorld) -> None:
    assert len(join(world, client_id="x" * 30_000).member_id) == 255 + 37
