from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.producer import partitioner as client
from pyspark_barnabas.sink.errors import SinkError
from pyspark_barnabas.sink.partitioning import Longs, Partitioner

BATCH_BYTES = 1_000
keys = st.lists(st.none() | st.binary(max_size=40), max_size=20)


def sizes(count: int, each: int = 100) -> Longs:
    return np.full(count, each, np.int64)


def partitioner() -> Partitioner:
    return Partitioner(BATCH_BYTES, Random(5))


@given(keys, st.integers(1, 50))
def test_rows_with_a_key_are_partitioned_as_by_kafkas_clients(values: list[bytes | None], count: int) -> None:
    array = pa.array(values, pa.binary())
    chosen = partitioner().choose("t", count, None, array, sizes(len(values)))
    for value, partition in zip(values, chosen.tolist(), strict=True):
        assert 0 <= partition < count
        if value is not None:
            assert partition == client.partition_for_key(value, count)


def test_a_row_with_a_partition_goes_there() -> None:
    explicit = pa.array([2, None, 0, None], pa.int32())
    chosen = partitioner().choose("t", 3, explicit, pa.array([b"k", b"k", None, None]), sizes(4))
    assert chosen[:3].tolist() == [2, client.partition_for_key(b"k", 3), 0]


@pytest.mark.parametrize("wrong", [-1, 3])
def test_a_missing_partition_is_reported(wrong: int) -> None:
    message = f"column partition: {wrong} is out of range; topic 't' has partitions 0 to 2"
    with pytest.raises(SinkError, match=message):
        partitioner().choose("t", 3, pa.array([0, wrong], pa.int32()), None, sizes(2))


def test_rows_without_a_key_stay_together_until_they_fill_a_batch() -> None:
    choosing = partitioner()
    chosen = np.concatenate([choosing.choose("t", 1_000, None, None, sizes(7)) for _ in range(10)]).tolist()
    changes = [row for row in range(1, 70) if chosen[row] != chosen[row - 1]]
    assert changes == [10, 20, 30, 40, 50, 60]


def test_rows_larger_than_a_batch_are_distributed() -> None:
    chosen = partitioner().choose("t", 1_000, None, None, sizes(20, 5 * BATCH_BYTES))
    assert len(set(chosen.tolist())) > 15


def test_each_topic_has_its_own_sticky_partition() -> None:
    choosing = partitioner()
    first = choosing.choose("a", 1_000, None, None, sizes(1))
    choosing.choose("b", 1_000, None, None, sizes(30))
    assert choosing.choose("a", 1_000, None, None, sizes(1)) == first
