"""Members of a consumer group join, get and revoke partitions, leave, and are fenced."""

import pytest

from barnabas.groups.consumer.client_info import Caller
from barnabas.groups.statistics import GroupCounts
from barnabas.wire.errors import ErrorCode, KafkaError
from support.consumer_groups import (
    ConsumerMember,
    group_of,
    heartbeat_request,
    join_request,
    named,
    reconcile,
    stored,
)
from support.group_worlds import GroupWorld


@pytest.fixture
def world() -> GroupWorld:
    """Create two topics; targets may change immediately."""
    world = GroupWorld(group_consumer_assignment_interval_ms="0")
    world.create_topic("a", 4)
    world.create_topic("b", 2)
    return world


def member(world: GroupWorld, member_id: str, **fields: object) -> ConsumerMember:
    return ConsumerMember(world, member_id, **fields)


def test_the_first_member_gets_everything_with_its_first_heartbeat(world: GroupWorld) -> None:
    m1 = member(world, "m1")
    answer = m1.join("a")
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("m1", 2, 5_000)
    assert m1.owned == {"a": {0, 1, 2, 3}}
    assert group_of(world).state_name == "Stable"


def test_a_heartbeat_without_changes_writes_and_returns_nothing(world: GroupWorld) -> None:
    m1 = member(world, "m1")
    m1.join("a")
    answer = m1.beat()
    assert (answer.member_epoch, answer.assignment) == (2, None)
    assert world.last.records == []


def test_a_new_member_gets_partitions_that_others_revoke(world: GroupWorld) -> None:
    m1, m2 = member(world, "m1"), member(world, "m2")
    m1.join("a")
    m2.join("a")
    assert (m2.epoch, m2.owned) == (3, {})
    assert group_of(world).state_name == "Reconciling"
    m1.beat()
    assert (m1.epoch, m1.owned) == (2, {"a": {0, 1}})
    assert m2.beat().assignment is None
    m1.beat(reports_owned=True)
    assert m1.epoch == 3
    m2.beat()
    assert m2.owned == {"a": {2, 3}}
    assert group_of(world).state_name == "Stable"


def test_partitions_of_a_leaving_member_go_to_the_others(world: GroupWorld) -> None:
    m1, m2 = member(world, "m1"), member(world, "m2")
    m1.join("a")
    m2.join("a")
    reconcile(world, m1, m2)
    assert m2.leave().member_epoch == -1
    m1.beat()
    assert m1.owned == {"a": {0, 1, 2, 3}}


def test_a_group_whose_last_member_leaves_is_empty(world: GroupWorld) -> None:
    m1 = member(world, "m1")
    m1.join("a")
    m1.leave()
    assert group_of(world).state_name == "Empty"
    assert world.timers == {}


def test_a_silent_member_is_fenced(world: GroupWorld) -> None:
    m1, m2 = member(world, "m1"), member(world, "m2")
    m1.join("a")
    m2.join("a")
    reconcile(world, m1, m2)
    for _ in range(9):
        world.pass_time(5_000)
        m1.beat()
    assert list(group_of(world).members) == ["m1"]
    assert m2.beat().code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_revoke_in_time_is_fenced(world: GroupWorld) -> None:
    m1, m2 = member(world, "m1", rebalance_timeout_ms=10_000), member(world, "m2")
    m1.join("a")
    m2.join("a")
    for _ in range(4):
        m1.beat()
        m2.beat()
        world.pass_time(3_000)
    assert m1.beat().code is ErrorCode.UNKNOWN_MEMBER_ID
    m2.beat()
    assert m2.owned == {"a": {0, 1, 2, 3}}


def test_a_member_that_does_not_revoke_is_fenced_as_soon_as_that_can_be_appended(world: GroupWorld) -> None:
    m1, m2 = member(world, "m1", rebalance_timeout_ms=10_000), member(world, "m2")
    m1.join("a")
    m2.join("a")
    m1.beat()
    world.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    world.pass_time(15_000)
    world.refusal = None
    world.pass_time(1_000)
    assert group_of(world).members.keys() == {"m2"}


def test_a_member_that_revokes_in_time_is_kept(world: GroupWorld) -> None:
    m1, m2 = member(world, "m1", rebalance_timeout_ms=10_000), member(world, "m2")
    m1.join("a")
    m2.join("a")
    m1.beat()
    m1.beat(reports_owned=True)
    world.pass_time(11_000)
    assert m1.beat().member_epoch == 3


@pytest.mark.parametrize("epoch", [1, 7])
def test_an_unknown_member_must_join(world: GroupWorld, epoch: int) -> None:
    m1, m2 = member(world, "m1"), member(world, "m2")
    m1.join("a")
    m2.epoch = epoch
    assert m2.beat().code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_to_a_missing_group_is_group_id_not_found(world: GroupWorld) -> None:
    m1 = member(world, "m1")
    m1.epoch = 1
    assert m1.beat().code is ErrorCode.GROUP_ID_NOT_FOUND
    assert m1.leave().code is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_future_epoch_is_fenced(world: GroupWorld) -> None:
    m1 = member(world, "m1")
    m1.join("a")
    m1.epoch = 3
    assert m1.beat().code is ErrorCode.FENCED_MEMBER_EPOCH


def test_the_previous_epoch_is_accepted_because_the_response_may_be_lost(world: GroupWorld) -> None:
    m1 = member(world, "m1")
    m1.join("a")
    m1.beat(subscribed_topic_names=["a", "b"])
    assert m1.epoch == 3
    m1.epoch = 2
    assert m1.beat().code is ErrorCode.FENCED_MEMBER_EPOCH  # it does not report its partitions
    topic_id = world.image.topics["a"].topic_id
    m1.assignment = {topic_id: {0, 1, 2, 3}}
    assert m1.beat(reports_owned=True).member_epoch == 3
    m1.epoch, m1.assignment = 2, {topic_id: {0, 1, 2, 3, 4}}
    assert m1.beat(reports_owned=True).code is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_fenced_member_can_join_again_without_partitions(world: GroupWorld) -> None:
    m1 = member(world, "m1")
    m1.join("a")
    m1.epoch = 7
    m1.beat()
    m1.join("a")
    assert m1.owned == {"a": {0, 1, 2, 3}}


def test_a_full_heartbeat_gets_a_full_response(world: GroupWorld) -> None:
    m1 = member(world, "m1")
    m1.join("a")
    answer = m1.beat(reports_owned=True, rebalance_timeout_ms=60_000, subscribed_topic_names=["a"])
    assert answer.assignment is not None
    assert world.last.records == []


def test_partitions_of_an_unsubscribed_topic_are_revoked(world: GroupWorld) -> None:
    m1 = member(world, "m1")
    m1.join("a", "b")
    m1.beat(subscribed_topic_names=["b"])
    assert m1.owned == {"b": {0, 1}}
    m1.beat(reports_owned=True)
    assert (m1.epoch, group_of(world).state_name) == (3, "Stable")


def test_an_unsubscribed_topic_is_revoked_before_there_is_a_newer_target() -> None:
    world = GroupWorld(group_consumer_assignment_interval_ms="1000")
    world.create_topic("a", 1)
    world.create_topic("b", 1)
    m1 = member(world, "m1")
    m1.join("a", "b")
    m1.beat(subscribed_topic_names=["b"])
    assert (m1.epoch, m1.owned) == (2, {"b": {0}})
    assert group_of(world).state_name == "Assigning"
    m1.beat(reports_owned=True)
    world.pass_time(1_000)
    m1.beat(reports_owned=True)
    assert (m1.epoch, group_of(world).state_name) == (3, "Stable")


def test_targets_change_at_most_once_per_assignment_interval() -> None:
    world = GroupWorld()
    world.create_topic("a", 2)
    m1, m2 = member(world, "m1"), member(world, "m2")
    m1.join("a")
    m2.join("a")
    assert (m2.epoch, group_of(world).epoch, group_of(world).assignment_epoch) == (2, 3, 2)
    world.pass_time(1_000)
    m2.beat()
    assert (m2.epoch, group_of(world).assignment_epoch) == (3, 3)


def test_a_target_is_computed_although_the_last_one_is_of_the_future() -> None:
    world = GroupWorld()
    world.create_topic("a", 2)
    m1, m2 = member(world, "m1"), member(world, "m2")
    m1.join("a")
    world.now_ms -= 3_600_000  # another broker coordinates the group, whose clock is behind
    m2.join("a")
    assert (m2.epoch, group_of(world).assignment_epoch) == (3, 3)


def test_new_partitions_are_assigned_at_the_next_heartbeat(world: GroupWorld) -> None:
    m1 = member(world, "m1")
    m1.join("a")
    world.grow_topic("a", 6)
    m1.beat()
    assert (m1.epoch, m1.owned) == (3, {"a": {0, 1, 2, 3, 4, 5}})


def test_a_topic_created_after_its_subscribers_is_assigned(world: GroupWorld) -> None:
    m1 = member(world, "m1")
    m1.join("later")
    assert m1.owned == {}
    world.create_topic("later", 1)
    m1.beat()
    assert m1.owned == {"later": {0}}


def test_a_deleted_topic_is_unassigned(world: GroupWorld) -> None:
    m1 = member(world, "m1")
    m1.join("a", "b")
    world.delete_topic("a")
    m1.beat()
    assert m1.owned == {"b": {0, 1}}


def test_a_recreated_topic_can_be_assigned_before_its_former_owner_knows(world: GroupWorld) -> None:
    m1, m2 = member(world, "m1"), member(world, "m2")
    m1.join("a", "b")
    before = world.image.topics["b"].topic_id
    world.delete_topic("b")
    world.create_topic("b", 2)
    m2.join("a", "b")
    assert m2.owned == {"b": {0, 1}}
    assert m1.assignment[before] == {0, 1}
    reconcile(world, m1, m2)
    assert m1.owned == {"a": {0, 1, 2}}
    assert m2.owned == {"a": {3}, "b": {0, 1}}


def test_an_unsubscribed_topic_changes_nothing(world: GroupWorld) -> None:
    m1 = member(world, "m1")
    m1.join("a")
    world.create_topic("other", 1)
    m1.beat()
    assert (m1.epoch, world.last.records) == (2, [])


def test_the_group_size_is_limited() -> None:
    world = GroupWorld(group_consumer_max_size="1")
    world.create_topic("a", 1)
    m1, m2 = member(world, "m1"), member(world, "m2")
    m1.join("a")
    assert m2.join("a").code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert m1.join("a").member_epoch == 2


def test_configs_of_the_group_apply_from_the_next_heartbeat(world: GroupWorld) -> None:
    m1 = member(world, "m1")
    m1.join("a")
    world.set_group_config("g", consumer_heartbeat_interval_ms="7000", consumer_session_timeout_ms="50000")
    assert m1.beat().heartbeat_interval_ms == 7_000
    assert world.timers["consumer-session", "g", "m1"] == world.now_ms + 50_000


def test_the_assignor_preferred_by_most_members_is_used(world: GroupWorld) -> None:
    members = [member(world, f"m{at}", server_assignor="range") for at in range(2)]
    for each in members:
        each.join("a", "b")
    reconcile(world, *members)
    assert members[0].owned == {"a": {0, 1}, "b": {0}}
    assert members[1].owned == {"a": {2, 3}, "b": {1}}


def test_the_state_is_restored_after_a_restart(world: GroupWorld) -> None:
    m1, m2 = member(world, "m1"), member(world, "m2", instance_id="i2")
    m1.join("a")
    m2.join("a", "b")
    m1.beat()
    before = group_of(world)
    world.restart()
    after = group_of(world)
    assert after is not before
    assert (after.members, after.target, after.owners) == (before.members, before.target, before.owners)
    assert (after.epoch, after.assignment_epoch, after.static_members) == (3, 3, {"i2": "m2"})
    assert set(world.timers) == {
        ("consumer-session", "g", "m1"),
        ("consumer-session", "g", "m2"),
        ("consumer-rebalance", "g", "m1"),
        ("expire offsets", "next round"),
    }
    reconcile(world, m1, m2)
    assert {**m1.owned, **m2.owned}.keys() == {"a", "b"}


def test_a_deleted_group_leaves_no_state(world: GroupWorld) -> None:
    m1 = member(world, "m1", subscribed_topic_regex="a.*")
    m1.join()
    world.ask(lambda shard, result, pending: shard.groups["g"].append_tombstones(result))
    assert world.shard.groups == {}
    world.restart()


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": " "}, ErrorCode.INVALID_REQUEST),
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"topic_partitions": None}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "sticky"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"subscribed_topic_regex": "(a"}, ErrorCode.INVALID_REGULAR_EXPRESSION),
    ],
)
def test_invalid_heartbeats_are_rejected(
    world: GroupWorld, fields: dict[str, object], code: ErrorCode
) -> None:
    answer = member(world, "m1").send(join_request("g", "m1", "a", **fields))
    assert answer.code is code, answer
    assert world.log == []


def test_in_version_0_the_broker_chooses_member_ids(world: GroupWorld) -> None:
    m1 = member(world, "")
    answer = m1.join("a", caller=Caller("c", "/h", 0))
    assert answer.member_id in group_of(world).members
    assert len(answer.member_id) == 22


def test_revoked_partitions_have_an_owner_until_the_member_confirms(world: GroupWorld) -> None:
    m1, m2 = member(world, "m1"), member(world, "m2")
    m1.join("a")
    m2.join("a")
    m1.beat()
    assert named(world, stored(world, "m1").revoking) == {"a": {2, 3}}
    assert len(group_of(world).owners) == 4


def test_a_stale_heartbeat_changes_no_timer(world: GroupWorld) -> None:
    m1 = member(world, "m1")
    m1.join("a")
    due_ms = world.timers["consumer-session", "g", "m1"]
    world.pass_time(10)
    m1.send(heartbeat_request("g", "m1", 9))
    assert world.timers["consumer-session", "g", "m1"] == due_ms


def test_members_and_their_epochs_are_counted(world: GroupWorld) -> None:
    m1, m2 = member(world, "m1"), member(world, "m2")
    m1.join("a")
    m2.join("a")
    m1.beat()
    statistics = world.shard.statistics()
    assert (statistics["consumer_groups"], statistics["consumer_members_count"]) == ({"Reconciling": 1}, 2)
    assert world.shard.context.counts == GroupCounts(consumer_rebalances_count=2)
