"""One rule for all changes of a partition: leaders, epochs, reassignments that are done."""

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


def settled(
    state: PartitionRegistration,
    up: frozenset[int] = ALL,
    election: Election = Election.ONLINE,
    **wanted: object,
):
    return build_partition_change(state, replace(state, **wanted), up, election)  # type: ignore[arg-type]


def test_what_changes_nothing_counts_no_epoch() -> None:
    assert settled(STATE) is STATE


def test_a_leader_that_is_gone_is_followed_by_the_first_replica_that_is_up_and_in_sync() -> None:
    after = settled(STATE, ALL - {1})
    assert (after.leader, after.leader_epoch, after.isr, after.partition_epoch) == (2, 5, (1, 2), 10)


def test_nobody_leads_where_nobody_in_sync_is_up() -> None:
    after = settled(STATE, frozenset({3}))
    assert (after.leader, after.leader_epoch, after.isr) == (NO_LEADER, 5, (1, 2))


def test_an_unclean_election_takes_who_is_up_and_trusts_nobody_else() -> None:
    after = settled(STATE, frozenset({3}), Election.UNCLEAN)
    assert (after.leader, after.leader_epoch, after.isr) == (3, 5, (3,))


def test_an_unclean_election_prefers_who_is_in_sync() -> None:
    assert settled(STATE, ALL - {1}, Election.UNCLEAN).isr == (1, 2)


@pytest.mark.parametrize(
    ("election", "leader"), [(Election.PREFERRED, 1), (Election.ONLINE, 2), (Election.UNCLEAN, 2)]
)
def test_only_a_preferred_election_takes_the_lead_from_who_has_it(election: Election, leader: int) -> None:
    state = replace(STATE, leader=2)
    assert settled(state, election=election).leader == leader


def test_the_preferred_leader_must_be_in_sync() -> None:
    state = replace(STATE, leader=2, isr=(2, 3))
    assert settled(state, election=Election.PREFERRED) is state


def test_in_sync_replicas_never_become_none() -> None:
    after = settled(STATE, frozenset(), isr=())
    assert (after.leader, after.isr) == (NO_LEADER, (1, 2))


def test_another_isr_counts_the_partition_epoch_alone() -> None:
    after = settled(STATE, isr=(1, 2, 3))
    assert (after.leader_epoch, after.partition_epoch) == (4, 10)


# Reassignments

MOVING = replace(STATE, replicas=(4, 5, 1, 2, 3), adding=(4, 5), removing=(1, 2, 3))


def test_a_reassignment_waits_until_all_that_come_are_in_sync() -> None:
    after = settled(MOVING, isr=(1, 2, 4))
    assert (after.replicas, after.adding, after.removing) == ((4, 5, 1, 2, 3), (4, 5), (1, 2, 3))


def test_a_reassignment_that_is_done_takes_the_old_replicas_out_and_the_lead_from_them() -> None:
    after = settled(MOVING, isr=(1, 2, 4, 5))
    assert after == PartitionRegistration(4, 5, isr=(4, 5), partition_epoch=10, replicas=(4, 5))


def test_a_replica_that_goes_counts_the_leader_epoch_even_if_it_did_not_lead() -> None:
    state = replace(STATE, isr=(1, 2, 3), replicas=(1, 2, 3), removing=(3,))
    after = settled(state)
    assert (after.leader, after.leader_epoch, after.isr, after.replicas) == (1, 5, (1, 2), (1, 2))


def test_when_more_go_than_come_all_that_stay_must_be_in_sync() -> None:
    state = replace(STATE, isr=(1, 3), removing=(3,))
    assert settled(state) is state
    assert settled(state, isr=(1, 2)).replicas == (1, 2)


def test_a_reassignment_that_would_leave_nobody_in_sync_waits() -> None:
    state = replace(STATE, isr=(3,), leader=3, removing=(3,))
    assert settled(state) is state


def test_replicas_that_only_come_are_done_when_in_sync() -> None:
    state = replace(STATE, replicas=(1, 2, 3, 4), adding=(4,))
    after = settled(state, isr=(1, 2, 4))
    assert (after.leader_epoch, after.adding, after.replicas) == (4, (), (1, 2, 3, 4))


BROKERS = st.frozensets(st.integers(1, 5))


@given(
    st.permutations([1, 2, 3, 4, 5]),
    st.frozensets(st.integers(1, 5), min_size=1),
    BROKERS,
    BROKERS,
    BROKERS,
    st.sampled_from(Election),
)
def test_every_change_keeps_a_partition_sound(
    replicas: list[int],
    isr: frozenset[int],
    adding: frozenset[int],
    removing: frozenset[int],
    up: frozenset[int],
    election: Election,
) -> None:
    before = initial_state(tuple(replicas))
    after = settled(
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


# What a change rests on

IMAGE = cluster(4, manually_assigned("t", [1, 2], [2, 3]), fenced=[4])


def test_brokers_are_up_unless_they_are_fenced() -> None:
    assert brokers_up(IMAGE) == {1, 2, 3}


def test_a_partition_is_found_with_its_state() -> None:
    topic, state = find_partition(IMAGE, "t", 1)
    assert (topic.name, state.replicas) == ("t", (2, 3))


@pytest.mark.parametrize(("name", "index"), [("t", 2), ("t", -1), ("gone", 0)])
def test_a_partition_that_is_not_there_is_unknown(name: str, index: int) -> None:
    with pytest.raises(KafkaError) as caught:
        find_partition(IMAGE, name, index)
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert f"'{name}'" in caught.value.message


def test_a_change_rests_on_the_topic_the_state_before_and_the_brokers() -> None:
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


def test_a_broker_that_comes_back_moves_what_a_change_rests_on() -> None:
    image = replayed(IMAGE, decide_register(IMAGE.brokers, broker(2, rack="r")))
    topic, state = find_partition(IMAGE, "t", 0)
    change = PartitionChange(topic, 0, state)
    assert partition_puts(image, [change])[1]["brokers/2"] != partition_puts(IMAGE, [change])[1]["brokers/2"]
