"""Config changes apply to consumer groups immediately."""

from barnabas.wire.errors import ErrorCode
from support.consumer_groups import ConsumerMember, group_of
from support.group_worlds import GroupWorld


def test_the_assignment_interval_follows_the_dynamic_config() -> None:
    world = GroupWorld(group_consumer_assignment_interval_ms="15000")
    world.create_topic("a", 2)
    m1, m2 = ConsumerMember(world, "m1"), ConsumerMember(world, "m2")
    m1.join("a")
    m2.join("a")
    assert group_of(world).assignment_epoch == 2
    world.set_config(group_consumer_assignment_interval_ms="0")
    m2.beat()
    assert group_of(world).assignment_epoch == 3


def test_a_groups_config_overrides_the_brokers() -> None:
    world = GroupWorld(group_consumer_assignment_interval_ms="15000")
    world.create_topic("a", 2)
    world.set_group_config("g", consumer_assignment_interval_ms="0")
    for member_id in ("m1", "m2"):
        ConsumerMember(world, member_id).join("a")
    assert group_of(world).assignment_epoch == 3


def test_an_unconfigured_assignor_is_not_supported() -> None:
    world = GroupWorld(group_consumer_assignors="range")
    assert ConsumerMember(world, "m1", server_assignor="uniform").join("a").code is (
        ErrorCode.UNSUPPORTED_ASSIGNOR
    )
    assert ConsumerMember(world, "m1", server_assignor="range").join("a").error_code == 0
