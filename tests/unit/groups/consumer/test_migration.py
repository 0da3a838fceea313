"""Online migration of groups between the classic and the consumer protocol."""

import pytest

from barnabas.groups.classic.group import ClassicGroup
from barnabas.wire.errors import ErrorCode, KafkaError
from support.classic_members import ClassicConsumer, assignment_bytes
from support.consumer_groups import ConsumerMember, group_of
from support.group_worlds import GroupWorld


def new_world(**config: str) -> GroupWorld:
    world = GroupWorld(
        group_consumer_assignment_interval_ms="0", group_initial_rebalance_delay_ms="0", **config
    )
    world.create_topic("a", 4)
    return world


@pytest.fixture
def world() -> GroupWorld:
    return new_world()


def classic_group(world: GroupWorld) -> ClassicConsumer:
    """Create a classic group of one consumer with all partitions."""
    consumer = ClassicConsumer(world)
    consumer.join("a")
    world.pass_time(0)
    if consumer.generation < 0:
        consumer.join("a")
    consumer.sync(**{consumer.member_id: {"a": {0, 1, 2, 3}}})
    assert consumer.owned == {"a": {0, 1, 2, 3}}
    return consumer


def test_a_classic_group_is_upgraded_when_the_first_consumer_member_joins(world: GroupWorld) -> None:
    old = classic_group(world)
    new = ConsumerMember(world, "new")
    new.join("a")
    group = group_of(world)
    assert set(group.members) == {old.member_id, "new"}
    assert group.members[old.member_id].classic is not None
    assert (group.epoch, new.epoch, new.owned) == (2, 2, {})
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    world.restart()
    assert set(group_of(world).members) == {old.member_id, "new"}


def test_classic_and_consumer_members_share_the_partitions(world: GroupWorld) -> None:
    old = classic_group(world)
    new = ConsumerMember(world, "new")
    new.join("a")
    old.rejoin("a")
    new.beat()
    assert (len(old.owned["a"]), len(new.owned["a"])) == (2, 2)
    assert old.owned["a"].isdisjoint(new.owned["a"])
    assert group_of(world).state_name == "Stable"
    assert old.beat() is ErrorCode.NONE


def test_a_classic_member_may_join_a_consumer_group(world: GroupWorld) -> None:
    new = ConsumerMember(world, "new")
    new.join("a")
    old = ClassicConsumer(world)
    answer = old.join("a")
    assert (answer.generation_id, answer.protocol_name, answer.leader, answer.members) == (3, "range", "", [])
    old.sync()
    assert old.owned == {}
    assert old.beat() is ErrorCode.NONE
    new.beat()
    new.beat(reports_owned=True)
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    old.rejoin("a")
    assert len(old.owned["a"]) == 2


def test_a_group_is_downgraded_when_its_last_consumer_member_leaves(world: GroupWorld) -> None:
    old = classic_group(world)
    new = ConsumerMember(world, "new")
    new.join("a")
    old.rejoin("a")
    new.leave()
    group = world.shard.groups["g"]
    assert isinstance(group, ClassicGroup)
    assert (group.state_name, list(group.members)) == ("Stable", [old.member_id])
    world.pass_time(0)
    assert group.state_name == "PreparingRebalance"
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    old.join("a")
    old.sync(**{old.member_id: {"a": {0, 1, 2, 3}}})
    assert old.owned == {"a": {0, 1, 2, 3}}
    world.restart()


def test_a_silent_consumer_member_counts_as_left(world: GroupWorld) -> None:
    old = classic_group(world)
    ConsumerMember(world, "new").join("a")
    old.rejoin("a")
    for _ in range(3):
        world.pass_time(20_000)
        old.beat()
    assert isinstance(world.shard.groups["g"], ClassicGroup)


def test_a_static_member_that_downgrades_takes_the_group_with_it(world: GroupWorld) -> None:
    new = ConsumerMember(world, "new", instance_id="i")
    new.join("a")
    new.leave(-2)
    old = ClassicConsumer(world, group_instance_id="i")
    answer = old.join("a")
    assert (answer.error_code, answer.generation_id) == (0, 2)
    group = world.shard.groups["g"]
    assert isinstance(group, ClassicGroup)
    assert list(group.members) == [old.member_id]
    assert old.beat() is ErrorCode.NONE
    old.sync()
    assert old.owned == {"a": {0, 1, 2, 3}}
    world.restart()


def test_a_static_member_upgrades_without_losing_its_partitions(world: GroupWorld) -> None:
    old = ClassicConsumer(world, group_instance_id="i")
    old.join("a")
    world.pass_time(0)
    if old.generation < 0:
        [group] = world.shard.groups.values()
        assert isinstance(group, ClassicGroup)
        [old.member_id], old.generation = list(group.members), group.generation
    old.sync(**{old.member_id: {"a": {0, 1, 2, 3}}})
    new = ConsumerMember(world, "new", instance_id="i")
    new.join("a")
    assert new.owned == {"a": {0, 1, 2, 3}}
    assert set(group_of(world).members) == {"new"}


@pytest.mark.parametrize("policy", ["disabled", "DOWNGRADE"])
def test_a_classic_group_is_not_upgraded_if_the_policy_forbids_it(policy: str) -> None:
    world = new_world(group_consumer_migration_policy=policy)
    classic_group(world)
    refused = ConsumerMember(world, "new").join("a")
    assert (refused.code, isinstance(world.shard.groups["g"], ClassicGroup)) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        True,
    )
    assert "online upgrade is disabled" in refused.message


def test_no_classic_member_joins_if_migration_is_disabled() -> None:
    world = new_world(group_consumer_migration_policy="disabled")
    ConsumerMember(world, "new").join("a")
    assert ClassicConsumer(world).join("a").code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_consumer_group_is_not_downgraded_if_the_policy_forbids_it() -> None:
    world = new_world(group_consumer_migration_policy="upgrade")
    old = classic_group(world)
    new = ConsumerMember(world, "new")
    new.join("a")
    old.rejoin("a")
    new.leave()
    assert set(group_of(world).members) == {old.member_id}
    assert old.beat() is ErrorCode.NONE  # the new target has not been assigned yet
    ConsumerMember(world, "newer").join("a")
    old.rejoin("a")


def test_an_empty_classic_group_is_replaced(world: GroupWorld) -> None:
    old = classic_group(world)
    old.leave()
    assert world.shard.groups["g"].is_empty
    new = ConsumerMember(world, "new")
    new.join("a")
    assert (new.epoch, set(group_of(world).members)) == (2, {"new"})


def test_an_empty_consumer_group_is_replaced(world: GroupWorld) -> None:
    new = ConsumerMember(world, "new")
    new.join("a")
    new.leave()
    classic_group(world)
    assert isinstance(world.shard.groups["g"], ClassicGroup)
    world.restart()


def test_a_group_with_a_custom_assignor_is_not_upgraded(world: GroupWorld) -> None:
    old = ClassicConsumer(world)
    old.join("a")
    world.pass_time(0)
    group = world.shard.groups["g"]
    assert isinstance(group, ClassicGroup)
    [member] = group.members.values()
    member.assignment = assignment_bytes({"a": {0}}, user_data=b"mine")
    refused = ConsumerMember(world, "new").join("a")
    assert refused.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert "custom assignor" in refused.message


def test_a_group_of_another_protocol_type_is_not_upgraded(world: GroupWorld) -> None:
    other = ClassicConsumer(world, protocol_type="connect")
    other.join("a")
    world.pass_time(0)
    refused = ConsumerMember(world, "new").join("a")
    assert refused.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert "embedded protocol" in refused.message


def test_a_classic_member_that_does_not_join_again_is_removed(world: GroupWorld) -> None:
    old = classic_group(world)
    new = ConsumerMember(world, "new")
    new.join("a")
    for _ in range(7):
        old.beat()
        new.beat()
        world.pass_time(10_000)
    assert set(group_of(world).members) == {"new"}
    assert old.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_classic_member_whose_first_attempt_to_join_again_is_not_appended_stays(world: GroupWorld) -> None:
    old = classic_group(world)
    new = ConsumerMember(world, "new")
    new.join("a")
    old.rejoin("a")
    world.grow_topic("a", 8)
    new.beat(reports_owned=True)
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    world.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert old.join("a") is world.refusal
    world.refusal = None
    old.join("a")
    old.sync()
    for _ in range(3):
        assert old.beat() is ErrorCode.NONE
        new.beat(reports_owned=True)
        world.pass_time(30_000)
    assert old.member_id in group_of(world).members


def test_a_classic_member_that_does_not_join_again_is_removed_as_soon_as_that_can_be_appended(
    world: GroupWorld,
) -> None:
    old = classic_group(world)
    new = ConsumerMember(world, "new")
    new.join("a")
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    world.pass_time(30_000)
    old.beat()
    new.beat()
    world.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    world.pass_time(31_000)
    world.refusal = None
    world.pass_time(1_000)
    assert group_of(world).members.keys() == {"new"}


def test_a_classic_member_that_does_not_sync_is_removed(world: GroupWorld) -> None:
    new = ConsumerMember(world, "new")
    new.join("a")
    old = ClassicConsumer(world)
    old.join("a")
    for _ in range(7):
        old.beat()
        new.beat(reports_owned=True)
        world.pass_time(10_000)
    assert set(group_of(world).members) == {"new"}


def test_invalid_requests_are_rejected(world: GroupWorld) -> None:
    new = ConsumerMember(world, "new")
    new.join("a")
    old = ClassicConsumer(world)
    old.join("a")
    old.sync()
    old.generation = 7
    assert old.beat() is ErrorCode.ILLEGAL_GENERATION
    assert old.sync().code is ErrorCode.ILLEGAL_GENERATION
    stranger = ClassicConsumer(world)
    stranger.member_id = "new"
    stranger.generation = 1
    assert stranger.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    other = ClassicConsumer(world).join("a", protocols=("sticky",))
    assert isinstance(other, KafkaError)
    assert other.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    malformed = ClassicConsumer(world, protocols=[])
    assert malformed.join("a").code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_classic_member_leaves_a_consumer_group(world: GroupWorld) -> None:
    new = ConsumerMember(world, "new")
    new.join("a")
    old = ClassicConsumer(world)
    old.join("a")
    assert old.leave() is ErrorCode.NONE
    assert old.leave() is ErrorCode.UNKNOWN_MEMBER_ID
    assert set(group_of(world).members) == {"new"}
