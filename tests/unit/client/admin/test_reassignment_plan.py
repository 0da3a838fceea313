"""Plans that spread replicas and preferred leaders."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.reassignment_plan import plan_reassignments

Replicas = Mapping[TopicPartition, Sequence[int]]


def topic(name: str, *replicas: Sequence[int]) -> dict[TopicPartition, Sequence[int]]:
    return {TopicPartition(name, index): brokers for index, brokers in enumerate(replicas)}


def planned(replicas: Replicas, racks: Mapping[int, str | None] | Sequence[int]) -> dict[str, Sequence[int]]:
    """Return the new replicas of what changes, by `topic-partition`."""
    brokers = racks if isinstance(racks, Mapping) else dict.fromkeys(racks)
    return {str(tp): after for tp, after in plan_reassignments(replicas, brokers).items()}


def unevenness(placed: Iterable[int], brokers: Iterable[int]) -> int:
    """Return how many more the broker with most has than the one with fewest."""
    counts = Counter(placed)
    numbers = [counts[broker] for broker in brokers]
    return max(numbers) - min(numbers)


def test_what_is_even_stays() -> None:
    assert planned(topic("t", [1, 2], [2, 3], [3, 1]), [1, 2, 3]) == {}
    assert planned({}, [1]) == {}


def test_a_new_broker_gets_its_share_and_nothing_else_moves() -> None:
    replicas = topic("t", *([broker] for broker in (1, 2) * 6))
    moves = planned(replicas, [1, 2, 3])
    assert set(moves.values()) == {(3,)}
    assert len(moves) == 4


def test_a_broker_that_is_left_out_gives_up_all_replicas_and_the_others_keep_theirs() -> None:
    replicas = topic("t", [1, 2], [2, 3], [3, 1], [1, 3], [2, 1], [3, 2])
    after = {**replicas, **plan_reassignments(replicas, dict.fromkeys([1, 2, 4]))}
    assert {broker for brokers in after.values() for broker in brokers} == {1, 2, 4}
    for tp, brokers in replicas.items():
        assert set(brokers) - {3} <= set(after[tp])


def test_small_topics_are_spread_over_all_brokers_together() -> None:
    replicas = {tp: brokers for number in range(6) for tp, brokers in topic(f"t{number}", [1]).items()}
    moves = planned(replicas, [1, 2, 3])
    assert Counter(moves.values()) == {(2,): 2, (3,): 2}


def test_preferred_leaders_are_spread_without_copies() -> None:
    replicas = topic("t", [1, 2, 3], [1, 2, 3], [1, 2, 3])
    moves = planned(replicas, [1, 2, 3])
    assert len(moves) == 2
    assert {frozenset(brokers) for brokers in moves.values()} == {frozenset({1, 2, 3})}
    assert {brokers[0] for brokers in moves.values()} == {2, 3}


def test_replicas_are_in_different_racks() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    after = plan_reassignments(topic("t", [1, 2], [2, 1], [3, 4], [4, 3]), racks)
    assert all({racks[broker] for broker in brokers} == {"a", "b"} for brokers in after.values())
    assert planned(topic("t", [1, 3], [4, 2]), racks) == {}


def test_a_replica_that_moves_stays_in_other_racks_than_the_others() -> None:
    assert planned(topic("t", [1, 2]), {1: "a", 3: "a", 4: "b"}) == {"t-0": (1, 4)}


def test_racks_count_only_if_each_broker_has_one() -> None:
    assert planned(topic("t", [1, 2]), {1: "a", 2: "a", 3: None}) == {}


def test_more_replicas_than_brokers_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"2 brokers cannot have 3 replicas of each partition of a, b$"):
        planned({**topic("a", [1, 2, 3]), **topic("b", [1, 2, 3]), **topic("c", [1])}, [1, 2])


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Replicas, dict[int, str | None]]:
    before = range(1, draw(st.integers(1, 5)) + 1)
    after = sorted(draw(st.sets(st.integers(1, 7), min_size=1)))
    has_racks = draw(st.booleans())
    racks = {broker: draw(st.sampled_from("abc")) if has_racks else None for broker in after}
    replicas: dict[TopicPartition, Sequence[int]] = {}
    for number in range(draw(st.integers(0, 4))):
        factor = draw(st.integers(1, min(len(before), len(after), 3)))
        orders = draw(st.lists(st.permutations(before), min_size=1, max_size=8))
        replicas |= topic(f"t{number}", *(order[:factor] for order in orders))
    return replicas, racks


@settings(max_examples=200, deadline=None)
@given(clusters())
def test_every_plan_is_valid_and_even(given: tuple[Replicas, dict[int, str | None]]) -> None:
    replicas, racks = given
    moves = plan_reassignments(replicas, racks)
    after = {**replicas, **moves}
    racks_count = len(set(racks.values()))
    for tp, brokers in after.items():
        assert len(set(brokers)) == len(brokers) == len(replicas[tp])
        assert set(brokers) <= set(racks)
        assert len({racks[broker] for broker in brokers}) == min(len(brokers), racks_count)
    for tp, brokers in moves.items():
        assert brokers != tuple(replicas[tp])
    if racks_count == 1:  # otherwise a small rack may have more than its share
        for name in {tp.topic for tp in after}:
            placed = (broker for tp, brokers in after.items() if tp.topic == name for broker in brokers)
            assert unevenness(placed, racks) <= 1
        assert unevenness((broker for brokers in after.values() for broker in brokers), racks) <= 1
    assert not plan_reassignments(after, racks)
