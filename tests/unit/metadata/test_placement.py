import random
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metadata.placement import (
    PlaceableBrokers,
    check_replicas,
    check_replication_factor,
    choose,
    spread,
)
from barnabas.wire.errors import ErrorCode, KafkaError


def up(broker_ids: Iterable[int]) -> PlaceableBrokers:
    return PlaceableBrokers(dict.fromkeys(broker_ids))


@given(
    broker_ids=st.lists(st.integers(0, 1000), min_size=1, max_size=9, unique=True),
    partition_count=st.integers(1, 40),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_replicas_of_a_partition_are_distinct_and_leaders_are_balanced(
    broker_ids: list[int], partition_count: int, seed: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(broker_ids)))
    assignments = spread(up(broker_ids), partition_count, factor, random.Random(seed))
    assert len(assignments) == partition_count
    for replicas in assignments:
        assert len(set(replicas)) == factor
        assert set(replicas) <= set(broker_ids)
    leaders = Counter(replicas[0] for replicas in assignments)
    assert max(leaders.values()) - min(leaders.get(broker, 0) for broker in broker_ids) <= 1
    held = Counter(broker for replicas in assignments for broker in replicas)
    assert max(held.values()) - min(held.get(broker, 0) for broker in broker_ids) <= factor


@given(
    rack_of_each=st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=9),
    partition_count=st.integers(1, 40),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_replicas_are_in_as_many_racks_as_possible_and_leaders_are_balanced(
    rack_of_each: list[str | None], partition_count: int, seed: int, data: st.DataObject
) -> None:
    racks = dict(enumerate(rack_of_each))
    sizes = Counter(rack_of_each)
    factor = data.draw(st.integers(1, len(racks)))
    assignments = spread(PlaceableBrokers(racks), partition_count, factor, random.Random(seed))
    for replicas in assignments:
        assert len(set(replicas)) == factor
        held = Counter(racks[broker_id] for broker_id in replicas)
        assert len(held) == min(factor, len(sizes))
        fullest = max(held.values())
        assert all(count >= fullest - 1 or count == sizes[rack] for rack, count in held.items())
    leaders = Counter(replicas[0] for replicas in assignments)
    assert max(leaders.values()) - min(leaders.get(broker_id, 0) for broker_id in racks) <= 1


def test_the_followers_of_a_leader_change_from_turn_to_turn() -> None:
    assignments = spread(up(range(5)), 40, 2, random.Random(0))
    followers = {replicas[1] for replicas in assignments if replicas[0] == 0}
    assert followers == {1, 2, 3, 4}


def test_fenced_brokers_follow_if_there_are_too_few_others() -> None:
    brokers = PlaceableBrokers({1: None, 2: None}, {3: None})
    assert set(spread(brokers, 2, 2, random.Random(0))) == {(1, 2), (2, 1)}
    assert set(spread(brokers, 2, 3, random.Random(0))) == {(1, 2, 3), (2, 1, 3)}
    with pytest.raises(KafkaError, match="All brokers are fenced"):
        spread(PlaceableBrokers({}, {1: None}), 1, 1, random.Random(0))


def test_further_replicas_go_to_racks_that_have_none() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
    assert choose([2, 4, 5, 3], [1], 3, racks) == [4, 5, 2]


def test_the_first_leader_is_random() -> None:
    firsts = {spread(up([1, 2, 3]), 1, 1, random.Random(seed))[0] for seed in range(50)}
    assert firsts == {(1,), (2,), (3,)}


@pytest.mark.parametrize(
    ("broker_ids", "message"),
    [([], "0 brokers are registered"), ([1], "1 broker is registered"), ([1, 2], "2 brokers are registered")],
)
def test_more_replicas_than_brokers_are_rejected(broker_ids: list[int], message: str) -> None:
    for refuse in (
        lambda: check_replication_factor(broker_ids, 3),
        lambda: spread(up(broker_ids), 1, 3, random.Random(0)),
    ):
        with pytest.raises(KafkaError) as raised:
            refuse()
        assert raised.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
        assert "replication factor of 3" in raised.value.message
        assert message in raised.value.message


@pytest.mark.parametrize(
    ("replicas", "factor", "why"),
    [
        ([], None, "includes an empty replica list"),
        ([1, 1], None, "[1, 1] names a broker twice"),
        ([1, 9], None, "includes broker 9, which is not registered"),
        ([-1], None, "includes broker -1, which is not registered"),
        ([1, 2], 1, "[1, 2] has 2 replicas where the other partitions have 1"),
    ],
)
def test_invalid_manual_assignments_are_rejected(replicas: list[int], factor: int | None, why: str) -> None:
    with pytest.raises(KafkaError) as raised:
        check_replicas(replicas, [1, 2, 3], factor)
    assert raised.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert why in raised.value.message


@pytest.mark.parametrize(("replicas", "factor"), [([3, 1], None), ([2], 1), ([2, 1, 3], 3)])
def test_valid_manual_assignments_pass(replicas: list[int], factor: int | None) -> None:
    check_replicas(replicas, [1, 2, 3], factor)
