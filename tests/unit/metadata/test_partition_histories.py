"""Any sequence of decisions keeps a partition valid, and its epochs increase."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from barnabas.metadata.brokers import decide_register
from barnabas.metadata.decision import Decision
from barnabas.metadata.elections import decide_elect
from barnabas.metadata.features import ELR_VERSION
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_change_builder import Election, brokers_up
from barnabas.metadata.reassignments import Target, decide_reassign, reassignments
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration
from barnabas.metadata.unregistration import decide_unregister
from barnabas.wire.errors import KafkaError
from support.images import broker, cluster, decide_isr, manually_assigned, replayed, with_elr

IDS = st.integers(1, 5)
REPLICAS = st.lists(IDS, min_size=1, max_size=4, unique=True)

Event = Callable[[MetadataImage], Decision[object]]


def state_of(image: MetadataImage) -> PartitionRegistration:
    return image.partition(image.topics["t"], 0)


def reassign(replicas: list[int] | None) -> Event:
    return lambda image: decide_reassign(image, [("t", [Target(0, replicas)])])


def elect(election: Election) -> Event:
    return lambda image: decide_elect(image, election, [("t", [0])])


def register(broker_id: int, fenced: bool) -> Event:
    return lambda image: decide_register(image.brokers, broker(broker_id, fenced=fenced))


def unregister(broker_id: int) -> Event:
    return lambda image: decide_unregister(image, broker_id)


def report(isr: list[int]) -> Event:
    """Report an ISR of replicas as the leader, which is included."""

    def decide(image: MetadataImage) -> Decision[object]:
        state = state_of(image)
        reported = [each for each in state.replicas if each in isr or each == state.leader]
        return decide_isr(image, "t", 0, reported)

    return decide


EVENTS = st.one_of(
    st.builds(reassign, st.none() | REPLICAS),
    st.builds(elect, st.sampled_from([Election.PREFERRED, Election.UNCLEAN])),
    st.builds(register, IDS, st.booleans()),
    st.builds(unregister, IDS),
    st.builds(report, st.lists(IDS)),
)


def check(before: MetadataImage, after: MetadataImage) -> None:
    old, new = state_of(before), state_of(after)
    assert new.isr or (new.leader == NO_LEADER and after.finalized_features.get(ELR_VERSION))
    assert set(new.isr) | set(new.elr) <= set(new.replicas)
    assert not set(new.isr) & set(new.elr)
    assert len(set(new.replicas)) == len(new.replicas)
    assert set(new.adding) | set(new.removing) <= set(new.replicas)
    assert not set(new.adding) & set(new.removing)
    assert new.leader == NO_LEADER or new.leader in new.isr
    if old != new:
        assert new.leader in {NO_LEADER, old.leader} | brokers_up(after)
        assert new.partition_epoch == old.partition_epoch + 1
    assert new.leader_epoch - old.leader_epoch in (0, 1)
    assert new.leader_epoch > old.leader_epoch or new.leader == old.leader
    listed = reassignments(after, None)
    assert listed == ({"t": {0: new}} if new.is_reassigning else {})


@given(REPLICAS, st.lists(EVENTS, max_size=20), st.booleans())
def test_a_partition_stays_valid(replicas: list[int], events: list[Event], has_elr: bool) -> None:
    image = cluster(5, manually_assigned("t", replicas))
    if has_elr:
        image = with_elr(image)
    for event in events:
        try:
            decision = event(image)
        except KafkaError:
            continue
        after = replayed(image, decision)
        check(image, after)
        image = after


@given(REPLICAS, REPLICAS, st.lists(st.builds(report, st.lists(IDS)), max_size=5))
def test_a_cancelled_reassignment_restores_the_replicas(
    replicas: list[int], target: list[int], reports: list[Event]
) -> None:
    image = cluster(5, manually_assigned("t", replicas))
    image = replayed(image, reassign(target)(image))
    for event in reports:
        image = replayed(image, event(image))
    if not state_of(image).is_reassigning:
        assert state_of(image).replicas == tuple(target)
        return
    after = replayed(image, reassign(None)(image))
    assert set(state_of(after).replicas) == set(replicas) or set(state_of(image).isr) <= set(target) - set(
        replicas
    )


@given(REPLICAS, REPLICAS)
def test_a_reassignment_reaches_its_target_once_all_replicas_are_in_sync(
    replicas: list[int], target: list[int]
) -> None:
    image = cluster(5, manually_assigned("t", replicas))
    image = replayed(image, reassign(target)(image))
    image = replayed(image, report([1, 2, 3, 4, 5])(image))
    state = state_of(image)
    assert (state.replicas, set(state.isr), state.is_reassigning) == (tuple(target), set(target), False)
