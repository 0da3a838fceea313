"""One rule for all changes of a partition: leaders, epochs, completed reassignments."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metadata.brokers import decide_register
from barnabas.metadata.partition_change_builder import (
    Election,
    PartitionChange,
    brokers_up,
    build_partition_change,
    find_partition,
    partition_puts,
)
from barnabas.metadata.store import NEVER
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration, initial_state
from barnabas.wire.errors import ErrorCode, KafkaError
from support.images import broker, cluster, manually_assigned, replayed, with_state

STATE = PartitionRegistration(leader=1, leader_epoch=4, isr=(1, 2), partition_epoch=9, replicas=(1, 2, 3))
ALL = frozenset({1, 2, 3, 4, 5})


def build(
    state: PartitionRegistration,
    up: frozenset[int] = ALL,
    election: Election = Election.ONLINE,
    **requested: object,
):
    return build_partition_change(state, replace(state, **requested), up, election)  # type: ignore[arg-type]


def test_without_changes_no_epoch_is_bumped() -> None:
    assert build(STATE) is STATE


def test_the_first_online_in_sync_replica_succeeds_a_lost_leader() -> None:
    after = build(STATE, ALL - {1})
    assert (after.leader, after.leader_epoch, after.isr, after.partition_epoch) == (2, 5, (1, 2), 10)


def test_without_an_online_in_sync_replica_there_is_no_leader() -> None:
    after = build(STATE, frozenset({3}))
    assert (after.leader, after.leader_epoch, after.isr) == (NO_LEADER, 5, (1, 2))


def test_an_unclean_election_elects_an_online_replica_as_the_only_in_sync_one() -> None:
    after = build(STATE, frozenset({3}), Election.UNCLEAN)
    assert (after.leader, after.leader_epoch, after.isr) == (3, 5, (3,))


def test_an_unclean_election_prefers_in_sync_replicas() -> None:
    assert build(STATE, ALL - {1}, Election.UNCLEAN).isr == (1, 2)


@pytest.mark.parametrize(
    ("election", "leader"), [(Election.PREFERRED, 1), (Election.ONLINE, 2), (Election.UNCLEAN, 2)]
)
def test_only_a_preferred_election_replaces_a_live_leader(election: Election, leader: int) -> None:
    state = replace(STATE, leader=2)
    assert build(state, election=election).leader == leader


def test_the_preferred_leader_must_be_in_sync() -> None:
    state = replace(STATE, leader=2, isr=(2, 3))
    assert build(state, election=Election.PREFERRED) is state


def test_the_isr_never_becomes_empty() -> None:
    after = build(STATE, frozenset(), isr=())
    assert (after.leader, after.isr) == (NO_LEADER, (1, 2))


def test_a_changed_isr_bumps_the_partition_epoch_only() -> None:
    after = build(STATE, isr=(1, 2, 3))
    assert (after.leader_epoch, after.partition_epoch) == (4, 10)


# Reassignments

MOVING = replace(STATE, replicas=(4, 5, 1, 2, 3), adding=(4, 5), removing=(1, 2, 3))


def test_a_reassignment_waits_until_all_added_replicas_are_in_sync() -> None:
    after = build(MOVING, isr=(1, 2, 4))
    assert (after.replicas, after.adding, after.removing) == ((4, 5, 1, 2, 3), (4, 5), (1, 2, 3))


def test_a_completed_reassignment_removes_old_replicas_and_their_leadership() -> None:
    after = build(MOVING, isr=(1, 2, 4, 5))
    assert after == PartitionRegistration(4, 5, isr=(4, 5), partition_epoch=10, replicas=(4, 5))


def test_removing_a_replica_bumps_the_leader_epoch_even_if_it_was_not_the_leader() -> None:
    state = replace(STATE, isr=(1, 2, 3), replicas=(1, 2, 3), removing=(3,))
    after = build(state)
    assert (after.leader, after.leader_epoch, after.isr, after.replicas) == (1, 5, (1, 2), (1, 2))


def test_if_more_replicas_are_removed_than_added_all_remaining_ones_must_be_in_sync() -> None:
    state = replace(STATE, isr=(1, 3), removing=(3,))
    assert build(state) is state
    assert build(state, isr=(1, 2)).replicas == (1, 2)


def test_a_reassignment_that_would_empty_the_isr_waits() -> None:
    state = replace(STATE, isr=(3,), leader=3, removing=(3,))
    assert build(state) is state


def test_a_reassignment_that_only_adds_replicas_completes_when_they_are_in_sync() -> None:
    state = replace(STATE, replicas=(1, 2, 3, 4), adding=(4,))
    after = build(state, isr=(1, 2, 4))
    assert (after.leader_epoch, after.adding, after.replicas) == (4, (), (1, 2, 3, 4))


# Eligible leader replicas (KIP-966)

WITH_ELR = PartitionRegistration(
    leader=1, leader_epoch=4, isr=(1, 2, 3), partition_epoch=9, replicas=(1, 2, 3)
)


def build_with_elr(
    before: PartitionRegistration,
    up: frozenset[int] = ALL,
    election: Election = Election.ONLINE,
    unclean: tuple[int, ...] = (),
    min_isr: int = 2,
    **requested: object,
) -> PartitionRegistration:
    target = replace(before, **requested)  # type: ignore[arg-type]
    return build_partition_change(before, target, up, election, min_isr=min_isr, unclean=unclean)


def elr_summary(
    state: PartitionRegistration,
) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    return state.leader, state.isr, state.elr, state.last_known_elr


def test_a_replica_that_leaves_below_min_insync_replicas_stays_eligible() -> None:
    two = build_with_elr(WITH_ELR, isr=(1, 2))
    assert elr_summary(two) == (1, (1, 2), (), ())  # the high watermark can rise without broker 3
    assert elr_summary(build_with_elr(two, isr=(1,))) == (1, (1,), (2,), ())


def test_enough_in_sync_replicas_end_the_eligibility_of_others() -> None:
    one = replace(WITH_ELR, isr=(1,), elr=(2,))
    assert elr_summary(build_with_elr(one, isr=(1, 3))) == (1, (1, 3), (), ())


def test_eligible_replicas_end_when_min_insync_replicas_is_lowered() -> None:
    one = replace(WITH_ELR, isr=(1,), elr=(2,))
    assert elr_summary(build_with_elr(one, min_isr=1)) == (1, (1,), (), ())
    assert elr_summary(build_with_elr(one, ALL - {1}, min_isr=1, isr=())) == (NO_LEADER, (), (1,), (1,))


def test_an_eligible_replica_leads_when_no_replica_is_in_sync() -> None:
    one = replace(WITH_ELR, isr=(1,), elr=(2,))
    after = build_with_elr(one, ALL - {1}, isr=())
    assert elr_summary(after) == (2, (2,), (1,), ())
    assert after.leader_epoch == 5


def test_an_in_sync_replica_that_is_down_is_not_replaced_by_an_eligible_one() -> None:
    one = replace(WITH_ELR, isr=(1,), elr=(2,))
    assert build_with_elr(one, ALL - {1}).leader == NO_LEADER


def test_the_last_in_sync_replica_remains_eligible_when_it_is_down() -> None:
    one = replace(WITH_ELR, isr=(1,), replicas=(1, 2))
    down = build_with_elr(one, ALL - {1}, min_isr=1, isr=())
    assert elr_summary(down) == (NO_LEADER, (), (1,), (1,))
    assert elr_summary(build_with_elr(down, min_isr=1)) == (1, (1,), (), ())


def test_a_replica_that_may_lack_records_is_not_eligible() -> None:
    one = replace(WITH_ELR, isr=(1,), elr=(2,))
    assert elr_summary(build_with_elr(one, isr=(), unclean=(1,))) == (2, (2,), (), ())
    assert elr_summary(build_with_elr(one, unclean=(2,))) == (1, (1,), (), ())


def test_without_any_complete_replica_only_the_last_leader_leads_again() -> None:
    last = replace(WITH_ELR, leader=NO_LEADER, isr=(), elr=(1,), last_known_elr=(1,))
    unclean = build_with_elr(last, ALL - {1}, unclean=(1,))
    assert elr_summary(unclean) == (NO_LEADER, (), (), (1,))
    assert elr_summary(build_with_elr(unclean, ALL - {1})) == (NO_LEADER, (), (), (1,))
    assert elr_summary(build_with_elr(unclean)) == (1, (1,), (), ())


def test_an_unclean_election_ends_the_eligibility_of_replicas() -> None:
    one = replace(WITH_ELR, isr=(1,), elr=(2,))
    after = build_with_elr(one, frozenset({3}), Election.UNCLEAN, isr=())
    assert elr_summary(after) == (3, (3,), (), ())


def test_min_insync_replicas_is_limited_by_the_number_of_replicas() -> None:
    alone = PartitionRegistration(1, 0, (1,), 0, (1,))
    assert build_with_elr(alone) is alone


def test_a_removed_replica_is_not_eligible() -> None:
    moving = replace(WITH_ELR, isr=(1, 2), removing=(2, 3))
    assert elr_summary(build_with_elr(moving)) == (1, (1,), (), ())


# Failed log directories


def test_an_offline_replica_does_not_lead() -> None:
    offline = replace(STATE, offline=(1,))
    assert build(offline).leader == 2
    assert build(replace(offline, isr=(1,)), election=Election.UNCLEAN).leader == 2


def test_a_replica_that_is_removed_is_no_longer_offline() -> None:
    moving = replace(STATE, isr=(1, 2), removing=(3,), offline=(3,))
    assert build(moving).offline == ()


BROKERS = st.frozensets(st.integers(1, 5))


@given(
    st.permutations([1, 2, 3, 4, 5]),
    st.frozensets(st.integers(1, 5), min_size=1),
    BROKERS,
    BROKERS,
    BROKERS,
    st.sampled_from(Election),
)
def test_every_change_keeps_a_partition_valid(
    replicas: list[int],
    isr: frozenset[int],
    adding: frozenset[int],
    removing: frozenset[int],
    up: frozenset[int],
    election: Election,
) -> None:
    before = initial_state(tuple(replicas))
    after = build(
        before,
        up,
        election,
        isr=tuple(isr),
        adding=tuple(adding - removing),
        removing=tuple(removing - adding),
    )
    assert after.isr
    assert after.replicas
    assert set(after.isr) <= set(after.replicas)
    assert after.leader == NO_LEADER or after.leader in up & set(after.isr)
    assert after.partition_epoch == (after != before)
    assert after.leader_epoch >= (after.leader != before.leader)
    assert after.is_reassigning or build_partition_change(after, after, up) is after


# Preconditions of a change

IMAGE = cluster(4, manually_assigned("t", [1, 2], [2, 3]), fenced=[4])


def test_brokers_are_active_unless_fenced() -> None:
    assert brokers_up(IMAGE) == {1, 2, 3}


def test_a_partition_is_found_with_its_state() -> None:
    topic, state = find_partition(IMAGE, "t", 1)
    assert (topic.name, state.replicas) == ("t", (2, 3))


@pytest.mark.parametrize(("name", "index"), [("t", 2), ("t", -1), ("gone", 0)])
def test_a_missing_partition_is_unknown(name: str, index: int) -> None:
    with pytest.raises(KafkaError) as caught:
        find_partition(IMAGE, name, index)
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert f"'{name}'" in caught.value.message


def test_a_change_depends_on_the_topic_the_previous_state_and_the_brokers() -> None:
    topic, state = find_partition(IMAGE, "t", 0)
    [put], reads = partition_puts(IMAGE, [PartitionChange(topic, 0, replace(state, leader=2))])
    assert reads == {
        put.key: NEVER,
        "topics/t": IMAGE.topics.revision("t"),
        "brokers/1": IMAGE.brokers.revision("1"),
        "brokers/2": IMAGE.brokers.revision("2"),
    }
    image = with_state(IMAGE, topic, 0, state)
    assert partition_puts(image, [PartitionChange(topic, 0, state)])[1][put.key] == image.revision


def test_a_partition_changed_twice_is_written_once() -> None:
    topic, state = find_partition(IMAGE, "t", 0)
    changes = [PartitionChange(topic, 0, replace(state, leader=leader)) for leader in (1, 2)]
    assert len(partition_puts(IMAGE, changes)[0]) == 1


def test_a_returning_broker_invalidates_dependent_changes() -> None:
    image = replayed(IMAGE, decide_register(IMAGE.brokers, broker(2, rack="r")))
    topic, state = find_partition(IMAGE, "t", 0)
    change = PartitionChange(topic, 0, state)
    assert partition_puts(image, [change])[1]["brokers/2"] != partition_puts(IMAGE, [change])[1]["brokers/2"]
