"""Splitting offset ranges into tasks, and sharing a limit among partitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.ids import TopicPartition
from barnabas.reading.offset_range import OffsetRange
from pyspark_barnabas.source.range_splitting import TaskLimits, share_limit, split_ranges

MEBIBYTE = 1 << 20
A, B, C = (TopicPartition("orders", index) for index in range(3))


def lengths(tasks: list[tuple[OffsetRange, ...]]) -> list[int]:
    return [sum(each.offsets_count for each in task) for task in tasks]


def test_each_partition_has_a_task() -> None:
    ranges = [OffsetRange(tp, 0, 10) for tp in (A, B, C)]
    assert split_ranges(ranges, {}, TaskLimits(128 * MEBIBYTE)) == [(each,) for each in ranges]
    assert split_ranges(ranges, {}, TaskLimits(128 * MEBIBYTE, tasks_min=3)) == [(each,) for each in ranges]


def test_whole_partitions_share_tasks_if_there_are_more_than_slots() -> None:
    small, large, last = OffsetRange(A, 0, 10), OffsetRange(B, 0, 1000), OffsetRange(C, 0, 20)
    limits = TaskLimits(128 * MEBIBYTE, slots_count=2)
    assert split_ranges([small, large, last], {}, limits) == [(small, large), (last,)]
    assert split_ranges([small, last], {}, limits) == [(small,), (last,)]


def test_tasks_that_are_shared_have_at_most_about_the_requested_size() -> None:
    ranges = [OffsetRange(TopicPartition("orders", index), 0, 50) for index in range(12)]
    weights = {each.tp: float(MEBIBYTE) for each in ranges}
    tasks = split_ranges(ranges, weights, TaskLimits(128 * MEBIBYTE, slots_count=2))
    assert lengths(tasks) == [100, 150, 100, 150, 100]


@pytest.mark.parametrize(
    ("size_mib", "count"),
    [(1, 1), (191, 1), (192, 2), (300, 2), (511, 2), (512, 4), (12_800, 100), (12_900, 100)],
)
def test_tasks_have_about_the_requested_size_or_more_and_an_even_number(size_mib: int, count: int) -> None:
    tasks = split_ranges([OffsetRange(A, 0, size_mib)], {A: MEBIBYTE}, TaskLimits(128 * MEBIBYTE))
    assert len(tasks) == count


def test_a_large_partition_is_split_into_tasks_of_equal_size() -> None:
    tasks = split_ranges([OffsetRange(A, 100, 400)], {A: MEBIBYTE}, TaskLimits(128 * MEBIBYTE))
    assert tasks == [(OffsetRange(A, 100, 250),), (OffsetRange(A, 250, 400),)]


def test_tasks_are_balanced_across_partitions_of_different_sizes() -> None:
    ranges = [OffsetRange(A, 0, 100), OffsetRange(B, 0, 200)]
    tasks = split_ranges(ranges, {A: 2_000.0, B: 1_000.0}, TaskLimits(100_000))
    assert tasks == [
        (OffsetRange(A, 0, 50),),
        (OffsetRange(A, 50, 100),),
        (OffsetRange(B, 0, 100),),
        (OffsetRange(B, 100, 200),),
    ]


@pytest.mark.parametrize(("record_bytes", "count"), [(256.0, 4), (120.0, 4), (20.0, 4), (8.0, 2), (1.0, 1)])
def test_small_records_count_as_rows_and_missing_ones_hardly(record_bytes: float, count: int) -> None:
    tasks = split_ranges([OffsetRange(A, 0, 2 * MEBIBYTE)], {A: record_bytes}, TaskLimits(128 * MEBIBYTE))
    assert len(tasks) == count


def test_there_are_as_many_tasks_as_requested_even_if_partitions_are_cut() -> None:
    tasks = split_ranges([OffsetRange(A, 0, 10)], {A: 1.0}, TaskLimits(MEBIBYTE, tasks_min=4))
    assert lengths(tasks) == [3, 2, 3, 2]


def test_there_are_at_most_as_many_tasks_as_offsets() -> None:
    assert len(split_ranges([OffsetRange(A, 0, 3)], {}, TaskLimits(MEBIBYTE, tasks_min=50))) == 3


def test_a_task_has_at_most_the_maximum_number_of_records() -> None:
    ranges = [OffsetRange(A, 0, 25), OffsetRange(B, 0, 5)]
    assert lengths(split_ranges(ranges, {}, TaskLimits(128 * MEBIBYTE, records_max=10))) == [10, 10, 5, 5]
    slots = TaskLimits(128 * MEBIBYTE, records_max=10, slots_count=1)
    assert max(lengths(split_ranges(ranges, {}, slots))) == 10


def test_an_empty_range_has_no_task() -> None:
    assert split_ranges([OffsetRange(A, 7, 7), OffsetRange(B, 9, 3)], {}, TaskLimits(1)) == []


@given(
    st.dictionaries(
        st.sampled_from([TopicPartition(topic, index) for topic in "ab" for index in range(4)]),
        st.tuples(st.integers(0, 1 << 40), st.integers(0, 5_000), st.floats(0, 1e6)),
    ),
    st.integers(1, 1 << 30),
    st.none() | st.integers(1, 60),
    st.none() | st.integers(1, 9_000),
    st.none() | st.integers(1, 4),
)
def test_every_offset_is_in_exactly_one_task(
    logs: dict[TopicPartition, tuple[int, int, float]],
    requested_bytes: int,
    tasks_min: int | None,
    records_max: int | None,
    slots_count: int | None,
) -> None:
    ranges = [OffsetRange(tp, low, low + count) for tp, (low, count, _) in logs.items()]
    weights = {tp: weight for tp, (_, _, weight) in logs.items()}
    requested_bytes = max(
        requested_bytes, int(sum(count * weights[tp] for tp, _, count in _counts(ranges)) / 200)
    )
    tasks = split_ranges(ranges, weights, TaskLimits(requested_bytes, tasks_min, records_max, slots_count))
    for tp, low, high in ranges:
        pieces = [each for task in tasks for each in task if each.tp == tp]
        edges = [low, *(each.high for each in pieces)]
        assert [each.low for each in pieces] == edges[:-1]
        assert edges[-1] == high
    if records_max is not None:
        assert all(length <= records_max for length in lengths(tasks))
    assert all(length > 0 for length in lengths(tasks))


def _counts(ranges: list[OffsetRange]) -> list[tuple[TopicPartition, int, int]]:
    return [(each.tp, each.low, each.offsets_count) for each in ranges]


def test_a_limit_is_shared_by_new_records() -> None:
    assert share_limit(40, {A: 0, B: 100}, {A: 300, B: 200}) == {A: 30, B: 110}


def test_a_limit_gives_every_partition_a_share() -> None:
    assert share_limit(10, {A: 0, B: 0}, {A: 1_000_000, B: 1}) == {A: 9, B: 1}


def test_a_limit_above_all_new_records_changes_nothing() -> None:
    assert share_limit(40, {A: 0, B: 5}, {A: 30, B: 7}) == {A: 30, B: 7}


def test_a_truncated_partition_has_no_share() -> None:
    assert share_limit(10, {A: 50, B: 0}, {A: 30, B: 100}) == {A: 30, B: 10}
