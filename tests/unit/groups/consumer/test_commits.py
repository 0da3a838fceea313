"""Authorized commits and fetches of offsets by members of a consumer group."""

import pytest

from barnabas.groups.group import CommitCheck
from barnabas.wire.errors import ErrorCode, KafkaError
from support.classic_members import ClassicConsumer
from support.consumer_groups import ConsumerMember, group_of
from support.group_worlds import GroupWorld


@pytest.fixture
def world() -> GroupWorld:
    """Create a member in epoch 3 that has partitions 0 and 1 since epoch 2, and is revoking the others."""
    world = GroupWorld(group_consumer_assignment_interval_ms="0")
    world.create_topic("a", 4)
    m1, m2 = ConsumerMember(world, "m1"), ConsumerMember(world, "m2")
    m1.join("a")
    m2.join("a")
    m1.beat()
    m1.beat(reports_owned=True)
    m2.beat()
    return world


def check(
    world: GroupWorld,
    member_id: str,
    epoch: int,
    *,
    version: int = 10,
    is_transactional: bool = False,
    instance_id: str | None = None,
) -> CommitCheck | None:
    group = group_of(world)
    return group.check_offset_commit(
        member_id, instance_id, epoch, is_transactional=is_transactional, version=version
    )


def code_of(world: GroupWorld, member_id: str, epoch: int, **options: bool | int) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        check(world, member_id, epoch, **options)  # type: ignore[arg-type]
    return refused.value.code


def test_a_member_commits_in_its_epoch(world: GroupWorld) -> None:
    assert check(world, "m1", 3) is None


def test_a_future_epoch_is_stale(world: GroupWorld) -> None:
    assert code_of(world, "m1", 4) is ErrorCode.STALE_MEMBER_EPOCH


def test_with_an_older_epoch_a_member_commits_partitions_that_it_has_had_since(world: GroupWorld) -> None:
    topic_id = world.image.topics["a"].topic_id
    checked = check(world, "m1", 2)
    assert checked is not None
    checked(topic_id, 0)
    for index in (2, 3, 9):  # they are no longer its own
        with pytest.raises(KafkaError) as refused:
            checked(topic_id, index)
        assert refused.value.code is ErrorCode.STALE_MEMBER_EPOCH
    before_it_had_any = check(world, "m1", 1)
    assert before_it_had_any is not None
    with pytest.raises(KafkaError):
        before_it_had_any(topic_id, 0)


def test_a_client_outside_the_group_commits_nothing(world: GroupWorld) -> None:
    assert code_of(world, "m9", 3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(world, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_need_a_version_with_member_epochs(world: GroupWorld) -> None:
    assert code_of(world, "m1", 3, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert check(world, "m1", 3, version=0, is_transactional=True) is None


def test_transactional_commits_without_member_id_succeed(world: GroupWorld) -> None:
    assert check(world, "", -1, is_transactional=True) is None


def test_without_members_tools_can_commit(world: GroupWorld) -> None:
    for member_id in ("m1", "m2"):
        ConsumerMember(world, member_id).leave()
    assert check(world, "", -1) is None
    assert code_of(world, "m1", 3) is ErrorCode.UNKNOWN_MEMBER_ID


def test_classic_members_get_generation_errors(world: GroupWorld) -> None:
    old = ClassicConsumer(world)
    old.join("a")
    assert check(world, old.member_id, old.generation, version=2) is None
    assert code_of(world, old.member_id, 99) is ErrorCode.ILLEGAL_GENERATION


def test_fetches_have_a_member_and_its_epoch_or_neither(world: GroupWorld) -> None:
    group = group_of(world)
    group.check_offset_fetch(None, -1)
    group.check_offset_fetch("m1", 3)
    for member_id, epoch, code in (
        ("m1", 2, ErrorCode.STALE_MEMBER_EPOCH),
        ("m9", 3, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        with pytest.raises(KafkaError) as refused:
            group.check_offset_fetch(member_id, epoch)
        assert refused.value.code is code


def test_only_offsets_of_subscribed_topics_are_in_use(world: GroupWorld) -> None:
    group = group_of(world)
    assert group.is_subscribed_to("a")
    assert not group.is_subscribed_to("b")
    assert group.offsets_may_expire
    assert group.offsets_unused_since_ms() is None
    with pytest.raises(KafkaError) as refused:
        group.check_deletion()
    assert refused.value.code is ErrorCode.NON_EMPTY_GROUP
