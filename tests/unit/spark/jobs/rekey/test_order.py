"""The order of a copy, and the new offsets of groups: each record once, key order preserved, nothing unread
skipped.
"""

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.client.producer.partitioner import murmur2
from pyspark_barnabas.jobs.rekey.order import (
    CopyPosition,
    CopyStep,
    Homes,
    RekeyError,
    StepFinder,
    cuts_of,
    kept_cuts,
    levels,
    plan_steps,
    read_after,
    unread_of,
)

HISTORIES = [(1,), (2, 4), (2, 3), (3, 4), (1, 2, 4), (4, 6), (2, 4, 8)]


@dataclass
class Written:
    """A record of the old topic; `at` numbers a key's records in the order of writing."""

    partition: int
    offset: int
    key: bytes | None
    at: int


@dataclass
class World:
    """An old topic, its added partitions, the rounds of its copy, and consumer groups."""

    homes: Homes
    records: list[Written]
    ends: list[dict[int, int]]  #: of each round
    groups: list[dict[int, int]]

    @property
    def starts(self) -> list[dict[int, int]]:
        return [dict.fromkeys(range(self.homes.counts[-1]), 0), *self.ends[:-1]]


def home(key: bytes, count: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % count


@st.composite
def worlds(draw: st.DrawFn, *, nested: bool = False, rounds_max: int = 3) -> World:
    counts = draw(st.sampled_from(HISTORIES))
    target = draw(st.sampled_from([counts[-1], counts[-1] * 2, 3, 1]))
    keys = [b"k%d" % number for number in range(draw(st.integers(1, 6)))]
    rounds = draw(st.integers(1, rounds_max))
    offsets: defaultdict[int, int] = defaultdict(int)
    seen: defaultdict[bytes | None, int] = defaultdict(int)
    records = []
    ends = []
    for number in range(
        len(counts) + rounds - 1
    ):  # partitions are added, the topic is copied, written to, copied again
        count = counts[min(number, len(counts) - 1)]
        for key in draw(st.lists(st.sampled_from([*keys, None]), max_size=10)):
            partition = draw(st.integers(0, count - 1)) if key is None else home(key, count)
            records.append(Written(partition, offsets[partition], key, seen[key]))
            seen[key] += 1
            offsets[partition] += draw(st.integers(1, 2))  # gaps, as from markers and compaction
        if number >= len(counts) - 1:
            ends.append({partition: offsets[partition] for partition in range(counts[-1])})
    groups: list[dict[int, int]] = []
    for _ in range(draw(st.integers(1, 3))):
        before = groups[-1] if groups and nested else {}
        groups.append(
            {
                partition: draw(st.integers(min(before.get(partition, 0), end), end))
                for partition, end in ends[-1].items()
            }
        )
    homes = Homes.of(counts[:-1], counts[-1], target)
    records = [each for each in records if not is_returning(homes, each)]
    return World(homes, records, ends, groups)


def is_returning(homes: Homes, record: Written) -> bool:
    keys = pa.array([record.key], pa.binary())
    return bool(homes.locate(keys, np.array([record.partition])).is_returning[0])


@dataclass
class Copy:
    """The new topic: each partition's records in order, computed as by the job."""

    steps: list[CopyStep]
    partitions: dict[int, list[tuple[CopyPosition, Written]]]
    last_starts: dict[int, int]
    cuts: list[dict[int, int]]


def rank_of(homes: Homes, record: Written) -> int:
    if record.key is None:
        return next(rank for rank, count in enumerate(homes.counts) if record.partition < count)
    return next(
        rank for rank, count in enumerate(homes.counts) if home(record.key, count) == record.partition
    )


def broken(world: World, cuts: list[dict[int, int]], starts: dict[int, int]) -> set[tuple[int, int]]:
    """Return pairs of levels that contradict a key's order, by comparing all pairs of records."""
    its = [each for each in world.records if each.key is not None and each.offset >= starts[each.partition]]

    def level(record: Written) -> int:
        return sum(record.offset >= cut[record.partition] for cut in cuts)

    return {
        (level(later), level(earlier))
        for earlier in its
        for later in its
        if earlier.key == later.key
        and rank_of(world.homes, earlier) < rank_of(world.homes, later)
        and level(earlier) > level(later)
    }


def copied(world: World, records_max: int) -> Copy:
    steps: list[CopyStep] = []
    cuts: list[dict[int, int]] = []
    for starts, ends in zip(world.starts, world.ends, strict=True):
        is_last = ends is world.ends[-1]
        expected = cuts_of(world.groups, starts, ends) if is_last else []
        cuts = [dict(each) for each in kept_cuts(expected, broken(world, expected, starts))]
        steps += plan_steps(world.homes, starts, ends, cuts, records_max)
    keys = pa.array([each.key for each in world.records], pa.binary())
    partitions = np.array([each.partition for each in world.records], np.int64)
    offsets = np.array([each.offset for each in world.records], np.int64)
    placed = world.homes.locate(keys, partitions)
    assert not placed.is_misplaced.any()
    assert not placed.is_returning.any()
    found = StepFinder(steps).find(placed.rank, partitions, offsets)
    new: dict[int, list[tuple[CopyPosition, Written]]] = {n: [] for n in range(world.homes.target_count)}
    for target, step, record in zip(placed.target.tolist(), found.tolist(), world.records, strict=True):
        assert step >= 0, "a record that no step copies"
        new[target].append((CopyPosition(step, record.partition, record.offset), record))
    for each in new.values():
        each.sort(key=lambda pair: pair[0])
    return Copy(steps, new, world.starts[-1], cuts)


def is_read(group: dict[int, int], record: Written) -> bool:
    return record.offset < group[record.partition]


def read_again(copy: Copy, group: dict[int, int]) -> int:
    """Return records that a group reads twice, if it continues at the first unread one of each new partition."""
    again = 0
    for its in copy.partitions.values():
        unread = [index for index, (_, record) in enumerate(its) if not is_read(group, record)]
        again += sum(is_read(group, record) for _, record in its[unread[0] :]) if unread else 0
    return again


@settings(deadline=None)  # the first call compiles the hash kernel
@given(worlds(), st.integers(1, 12))
def test_each_record_is_in_one_step_and_keys_and_partitions_keep_their_order(
    world: World, records_max: int
) -> None:
    copy = copied(world, records_max)
    assert sum(map(len, copy.partitions.values())) == len(world.records)
    for target, its in copy.partitions.items():
        by_key: defaultdict[bytes | None, list[Written]] = defaultdict(list)
        for _, record in its:
            by_key[record.key].append(record)
            if record.key is not None:
                assert target == home(record.key, world.homes.target_count)
        for key, mine in by_key.items():
            if key is not None:
                assert all(one.at < other.at for one, other in pairwise(mine))
        for partition in range(world.homes.counts[-1]):
            unkeyed = [record.offset for record in by_key[None] if record.partition == partition]
            assert unkeyed == sorted(unkeyed)


@settings(deadline=None)  # the first call compiles the hash kernel
@given(worlds(), st.integers(1, 12))
def test_a_record_is_searched_only_in_the_ranges_of_its_step(world: World, records_max: int) -> None:
    copy = copied(world, records_max)
    for its in copy.partitions.values():
        for position, record in its:
            step = copy.steps[position.step]
            assert step.rank == rank_of(world.homes, record)
            assert any(
                partition == record.partition and low <= record.offset < high
                for partition, low, high in step.ranges
            )
    assert all(step.offsets_count > 0 for step in copy.steps)


@settings(deadline=None)  # the first call compiles the hash kernel
@given(worlds(), st.integers(1, 12))
def test_unread_records_are_never_skipped_and_repeated_ones_are_all_checked(
    world: World, records_max: int
) -> None:
    copy = copied(world, records_max)
    starts = dict.fromkeys(range(world.homes.counts[-1]), 0)
    for group in world.groups:
        unread = unread_of(group, starts, world.ends[-1])
        for its in copy.partitions.values():
            at = next((index for index, (_, each) in enumerate(its) if not is_read(group, each)), len(its))
            for _, record in its[:at]:
                assert not is_within(unread, record)
            if at == len(its):
                continue
            candidates = read_after(group, copy.steps, its[at][0].step)
            for _, record in its[at:]:
                assert is_within(unread, record) or is_within(candidates, record)


def is_within(spans: dict[int, tuple[int, int]], record: Written) -> bool:
    low, high = spans.get(record.partition, (0, 0))
    return low <= record.offset < high


@settings(deadline=None)  # the first call compiles the hash kernel
@given(worlds(nested=True), st.integers(1, 12))
def test_groups_without_mixed_progress_read_everything_exactly_once(world: World, records_max: int) -> None:
    copy = copied(world, records_max)
    for group in world.groups:
        is_current = all(
            is_read(group, each) or each.offset >= copy.last_starts[each.partition] for each in world.records
        )
        if is_current and keeps_order(world, group):
            assert read_again(copy, group) == 0


@settings(deadline=None)  # the first call compiles the hash kernel
@given(worlds(rounds_max=1), st.integers(1, 12))
def test_one_group_rereads_only_what_preserving_key_order_requires(world: World, records_max: int) -> None:
    world.groups = world.groups[:1]
    copy = copied(world, records_max)
    if read_again(copy, world.groups[0]):
        assert not keeps_order(world, world.groups[0])


def keeps_order(world: World, group: dict[int, int]) -> bool:
    """Whether the group has read no record of a key before an earlier one of it."""
    last: dict[bytes, bool] = {}
    for record in sorted(world.records, key=lambda each: each.at):
        if record.key is None:
            continue
        read = is_read(group, record)
        if read and not last.get(record.key, True):
            return False
        last[record.key] = read
    return True


def test_keys_are_partitioned_as_by_javas_clients() -> None:
    homes = Homes.of([4], 6, 10)
    keys = [b"", b"a", b"customer-17", None]
    placed = homes.locate(pa.array(keys, pa.binary()), np.array([0, 1, 2, 5]))
    assert placed.target.tolist() == [
        *((murmur2(key) & 0x7FFFFFFF) % 10 for key in keys[:3] if key is not None),
        5,
    ]


def test_records_in_a_wrong_partition_or_in_a_reused_one_of_their_key_are_reported() -> None:
    homes = Homes.of([2, 3], 4, 4)
    keys = [b"k%d" % number for number in range(200)]
    returning = [key for key in keys if home(key, 2) == home(key, 4) != home(key, 3)]
    misplaced = [key for key in keys if 3 not in (home(key, 2), home(key, 3), home(key, 4))]
    assert returning
    assert misplaced
    placed = homes.locate(pa.array(returning, pa.binary()), np.array([home(key, 2) for key in returning]))
    assert placed.is_returning.all()
    assert not placed.is_misplaced.any()
    placed = homes.locate(pa.array(misplaced, pa.binary()), np.full(len(misplaced), 3))
    assert placed.is_misplaced.all()
    assert not placed.is_returning.any()
    assert not placed.rank.any()


def test_doubling_the_partitions_never_moves_a_key_back() -> None:
    homes = Homes.of([2, 4, 8], 16, 16)
    keys = [b"k%d" % number for number in range(500)]
    for count in homes.counts:
        its = np.array([home(key, count) for key in keys])
        assert not homes.locate(pa.array(keys, pa.binary()), its).is_returning.any()


def test_a_growing_number_of_partitions_is_expected() -> None:
    assert Homes.of([], 4, 4).counts == (4,)
    assert Homes.of([4], 4, 4).counts == (4,)
    for was in ([6], [0], [3, 2]):
        with pytest.raises(RekeyError, match="each count must be larger than the one before"):
            Homes.of(was, 4, 4)


def test_cuts_are_the_read_offsets_where_one_group_is_behind_another() -> None:
    starts, ends = {0: 0, 1: 0}, {0: 10, 1: 10}
    assert cuts_of([{0: 7, 1: 5}, {0: 3, 1: 5}], starts, ends) == [{0: 3, 1: 5}, {0: 7, 1: 5}]
    assert cuts_of([{0: 7, 1: 2}, {0: 3, 1: 5}], starts, ends) == [{0: 3, 1: 2}, {0: 7, 1: 5}]
    assert cuts_of([{0: 10, 1: 99}, {0: 0}, {}], starts, ends) == []


def test_a_record_is_behind_the_cuts_that_its_offset_has_reached() -> None:
    cuts = [{0: 3, 1: 5}, {0: 7, 1: 5}]
    found = levels(cuts, np.array([0, 0, 0, 1, 1]), np.array([2, 3, 7, 4, 5]))
    assert found.tolist() == [0, 1, 2, 0, 2]
    assert kept_cuts(cuts, [(0, 1)]) == [cuts[1]]
    assert kept_cuts(cuts, [(0, 2)]) == []


def test_partitions_that_cannot_have_a_rank_are_skipped() -> None:
    starts, ends = dict.fromkeys(range(4), 0), dict.fromkeys(range(4), 10)
    doubled = plan_steps(Homes.of([2], 4, 4), starts, ends, [], 1_000)
    assert [(step.rank, [each[0] for each in step.ranges]) for step in doubled] == [
        (0, [0, 1, 2, 3]),
        (1, [2, 3]),
    ]
    uneven = plan_steps(Homes.of([3], 4, 4), starts, ends, [], 1_000)
    assert [each[0] for each in uneven[1].ranges] == [0, 1, 2, 3]
