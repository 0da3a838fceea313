"""Members with an instance id return with their identity."""

import pytest

from barnabas.wire.errors import ErrorCode
from support.consumer_groups import ConsumerMember, group_of, reconcile, stored
from support.group_worlds import GroupWorld


@pytest.fixture
def world() -> GroupWorld:
    world = GroupWorld(group_consumer_assignment_interval_ms="0")
    world.create_topic("a", 4)
    return world


def static(world: GroupWorld, member_id: str, instance_id: str = "i") -> ConsumerMember:
    return ConsumerMember(world, member_id, instance_id=instance_id)


def test_a_returning_static_member_takes_over_without_a_rebalance(world: GroupWorld) -> None:
    m1, other = static(world, "m1"), static(world, "m2", "j")
    m1.join("a")
    other.join("a")
    reconcile(world, m1, other)
    before = m1.owned
    assert m1.leave(-2).member_epoch == -2
    m3 = static(world, "m3")
    m3.join("a")
    assert (m3.epoch, m3.owned) == (3, before)
    assert group_of(world).epoch == 3
    assert group_of(world).members.keys() == {"m2", "m3"}
    assert group_of(world).static_members == {"i": "m3", "j": "m2"}


def test_a_static_member_that_left_temporarily_keeps_its_partitions_until_its_session_ends(
    world: GroupWorld,
) -> None:
    m1, other = static(world, "m1"), static(world, "m2", "j")
    m1.join("a")
    other.join("a")
    reconcile(world, m1, other)
    m1.leave(-2)
    world.pass_time(40_000)
    other.beat()
    assert len(other.owned["a"]) == 2
    world.pass_time(5_001)
    other.beat()
    assert len(other.owned["a"]) == 4


def test_an_instance_id_in_use_is_unreleased(world: GroupWorld) -> None:
    static(world, "m1").join("a")
    assert static(world, "m2").join("a").code is ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_replaced_static_member_is_fenced(world: GroupWorld) -> None:
    m1 = static(world, "m1")
    m1.join("a")
    m1.leave(-2)
    m2 = static(world, "m2")
    m2.join("a")
    m1.epoch = 2
    assert m1.beat().code is ErrorCode.FENCED_INSTANCE_ID
    assert m1.leave().code is ErrorCode.FENCED_INSTANCE_ID
    assert m2.beat().member_epoch == 2


def test_an_unknown_instance_id_is_an_error(world: GroupWorld) -> None:
    ConsumerMember(world, "m1").join("a")
    m2 = static(world, "m2")
    m2.epoch = 1
    assert m2.beat().code is ErrorCode.UNKNOWN_MEMBER_ID
    assert m2.leave(-2).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_leaves_for_good_releases_its_partitions(world: GroupWorld) -> None:
    m1, other = static(world, "m1"), static(world, "m2", "j")
    m1.join("a")
    other.join("a")
    reconcile(world, m1, other)
    m1.leave()
    other.beat()
    assert len(other.owned["a"]) == 4
    assert group_of(world).static_members == {"j": "m2"}


def test_returning_with_another_subscription_bumps_the_epoch(world: GroupWorld) -> None:
    world.create_topic("b", 1)
    m1 = static(world, "m1")
    m1.join("a")
    m1.leave(-2)
    m2 = static(world, "m2")
    m2.join("b")
    assert (m2.epoch, m2.owned, group_of(world).epoch) == (3, {"b": {0}}, 3)


def test_a_returning_member_may_commit_in_any_epoch(world: GroupWorld) -> None:
    m1 = static(world, "m1")
    m1.join("a")
    m1.leave(-2)
    assert set(stored(world, "m1").assigned[world.image.topics["a"].topic_id].values()) == {0}


def test_a_static_member_may_rejoin_with_its_own_id_after_a_restart(world: GroupWorld) -> None:
    m1 = static(world, "m1")
    m1.join("a")
    m1.leave(-2)
    world.restart()
    m1.join("a")
    assert (m1.epoch, m1.owned) == (2, {"a": {0, 1, 2, 3}})
