import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metadata.placement import check_replicas, check_replication_factor, spread
from barnabas.wire.errors import ErrorCode, KafkaError


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
    assignments = spread(broker_ids, partition_count, factor, random.Random(seed))
    assert len(assignments) == partition_count
    for replicas in assignments:
        assert len(set(replicas)) == factor
        assert set(replicas) <= set(broker_ids)
    leaders = Counter(replicas[0] for replicas in assignments)
    assert max(leaders.values()) - min(leaders.get(broker, 0) for broker in broker_ids) <= 1
    held = Counter(broker for replicas in assignments for broker in replicas)
    assert max(held.values()) - min(held.get(broker, 0) for broker in broker_ids) <= factor


def test_the_first_leader_is_random() -> None:
    firsts = {spread([1, 2, 3], 1, 1, random.Random(seed))[0] for seed in range(50)}
    assert firsts == {(1,), (2,), (3,)}


@pytest.mark.parametrize(
    ("broker_ids", "message"),
    [([], "0 brokers are registered"), ([1], "1 broker is registered"), ([1, 2], "2 brokers are registered")],
)
def test_more_replicas_than_brokers_are_rejected(broker_ids: list[int], message: str) -> None:
    for refuse in (
        lambda: check_replication_factor(broker_ids, 3),
        lambda: spread(broker_ids, 1, 3, random.Random(0)),
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
