"""One reconciliation of a member with its target, state by state."""

from typing import Any

import pytest

from barnabas.groups.consumer.assignors.group_spec import Partitions
from barnabas.groups.consumer.member import ConsumerGroupMember, MemberState
from barnabas.groups.consumer.reconciliation import TRANSITIONS, ReconciliationInput, reconcile
from barnabas.wire.errors import ErrorCode, KafkaError

T, U = b"t" * 16, b"u" * 16
S = MemberState


def some(*indexes: int, topic: bytes = T) -> Partitions:
    return {topic: frozenset(indexes)} if indexes else {}


def held(*indexes: int, epoch: int = 1) -> dict[bytes, dict[int, int]]:
    return {T: dict.fromkeys(indexes, epoch)} if indexes else {}


def member(**fields: Any) -> ConsumerGroupMember:
    return ConsumerGroupMember("m", **{"member_epoch": 1, "previous_epoch": 1, **fields})


def reconciliation_input(
    epoch: int, target: Partitions, owned: Partitions | None = None, **fields: Any
) -> ReconciliationInput:
    taken = fields.pop("taken", ())
    topic_ids = fields.pop("topic_ids", frozenset({T, U}))
    return ReconciliationInput(
        epoch, target, topic_ids, lambda topic_id, index: index in taken, owned, **fields
    )


def test_a_stable_member_in_the_targets_epoch_is_unchanged() -> None:
    stable = member(assigned=held(1, 2))
    assert reconcile(stable, reconciliation_input(1, some(1, 2))) is stable


def test_a_member_that_owns_its_target_advances_its_epoch() -> None:
    moved = reconcile(member(assigned=held(1, 2)), reconciliation_input(2, some(1, 2)))
    assert (moved.state, moved.member_epoch, moved.previous_epoch) == (S.STABLE, 2, 1)
    assert moved.assigned == held(1, 2)


def test_free_new_partitions_are_assigned_with_the_targets_epoch() -> None:
    moved = reconcile(member(assigned=held(1)), reconciliation_input(2, some(1, 2)))
    assert (moved.state, moved.assigned) == (S.STABLE, {T: {1: 1, 2: 2}})


def test_partitions_are_revoked_before_the_epoch_is_reached() -> None:
    moved = reconcile(member(assigned=held(1, 2)), reconciliation_input(2, some(2, 3)))
    assert (moved.state, moved.member_epoch) == (S.UNREVOKED_PARTITIONS, 1)
    assert (moved.assigned, moved.revoking) == (held(2), held(1))


@pytest.mark.parametrize("owned", [None, some(1, 2), some(1)])
def test_a_member_that_may_still_own_revoked_partitions_is_unchanged(owned: Partitions | None) -> None:
    giving = member(state=S.UNREVOKED_PARTITIONS, assigned=held(2), revoking=held(1))
    assert reconcile(giving, reconciliation_input(2, some(2, 3), owned)) is giving


@pytest.mark.parametrize("owned", [some(2), {}])
def test_a_member_that_confirms_a_revocation_advances(owned: Partitions) -> None:
    giving = member(state=S.UNREVOKED_PARTITIONS, assigned=held(2), revoking=held(1))
    moved = reconcile(giving, reconciliation_input(2, some(2, 3), owned))
    assert (moved.state, moved.member_epoch, moved.assigned) == (S.STABLE, 2, {T: {2: 1, 3: 2}})
    assert moved.revoking == {}


def test_a_member_that_joins_without_partitions_revokes_in_the_same_step() -> None:
    moved = reconcile(member(assigned=held(1, 2)), reconciliation_input(2, some(2), owned={}))
    assert (moved.state, moved.member_epoch, moved.assigned) == (S.STABLE, 2, held(2))


def test_partitions_of_others_are_awaited() -> None:
    moved = reconcile(member(assigned=held(1)), reconciliation_input(2, some(1, 2, 3), taken={2}))
    assert (moved.state, moved.member_epoch) == (S.UNRELEASED_PARTITIONS, 2)
    assert moved.assigned == {T: {1: 1, 3: 2}}


def test_a_member_that_still_waits_writes_no_record() -> None:
    waiting = member(state=S.UNRELEASED_PARTITIONS, member_epoch=2, assigned=held(1))
    assert reconcile(waiting, reconciliation_input(2, some(1, 2), taken={2})) is waiting


def test_a_waiting_member_gets_each_partition_when_it_is_free() -> None:
    waiting = member(state=S.UNRELEASED_PARTITIONS, member_epoch=2, assigned=held(1))
    moved = reconcile(waiting, reconciliation_input(2, some(1, 2, 3), taken={3}))
    assert (moved.state, moved.assigned) == (S.UNRELEASED_PARTITIONS, {T: {1: 1, 2: 2}})
    assert reconcile(moved, reconciliation_input(2, some(1, 2, 3))).state is S.STABLE


def test_a_waiting_member_can_get_a_newer_target() -> None:
    waiting = member(state=S.UNRELEASED_PARTITIONS, member_epoch=2, assigned=held(1))
    moved = reconcile(waiting, reconciliation_input(3, some(4), owned=some(1)))
    assert (moved.state, moved.member_epoch, moved.revoking) == (S.UNREVOKED_PARTITIONS, 2, held(1))


def test_a_partition_being_revoked_can_be_assigned_again() -> None:
    giving = member(state=S.UNREVOKED_PARTITIONS, assigned=held(2), revoking=held(1))
    moved = reconcile(giving, reconciliation_input(3, some(1, 2), some(2), taken={1, 2}))
    assert (moved.state, moved.assigned) == (S.STABLE, {T: {2: 1, 1: 3}})


def test_unsubscribed_topics_are_revoked_whatever_the_target() -> None:
    both = {**held(1), U: {0: 1}}
    moved = reconcile(
        member(assigned=both),
        reconciliation_input(1, some(1), topic_ids=frozenset({U}), has_subscription_changed=True),
    )
    assert (moved.state, moved.member_epoch) == (S.UNREVOKED_PARTITIONS, 1)
    assert (moved.assigned, moved.revoking) == ({U: {0: 1}}, held(1))


def test_topics_unsubscribed_during_a_revocation_are_added_to_it() -> None:
    giving = member(state=S.UNREVOKED_PARTITIONS, assigned={**held(2), U: {0: 1}}, revoking=held(1))
    moved = reconcile(
        giving, reconciliation_input(2, {}, topic_ids=frozenset({T}), has_subscription_changed=True)
    )
    assert (moved.assigned, moved.revoking) == (held(2), {**held(1), U: {0: 1}})


def test_an_unsubscribed_topic_that_is_already_released_is_removed() -> None:
    both = {**held(1), U: {0: 1}}
    unsubscribed = reconciliation_input(
        1, {}, owned=some(1), topic_ids=frozenset({T}), has_subscription_changed=True
    )
    moved = reconcile(member(assigned=both), unsubscribed)
    assert (moved.state, moved.assigned, moved.revoking) == (S.STABLE, held(1), {})


@pytest.mark.parametrize("owned", [None, some(1)])
def test_a_member_in_a_state_of_a_newer_broker_must_start_again(owned: Partitions | None) -> None:
    with pytest.raises(KafkaError) as fenced:
        reconcile(member(state=S.UNKNOWN, assigned=held(1)), reconciliation_input(2, some(1), owned))
    assert fenced.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    moved = reconcile(member(state=S.UNKNOWN, assigned=held(1)), reconciliation_input(2, some(1), {}))
    assert (moved.state, moved.member_epoch) == (S.STABLE, 2)


def test_every_state_has_a_transition() -> None:
    assert all(TRANSITIONS[state] for state in S)
