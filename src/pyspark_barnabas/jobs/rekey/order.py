"""Order in which a topic's records are copied to other partitions, and where a group continues there. No IO.

**Homes.** In a topic that has grown from 4 to 6 partitions, a key's records went to partition `murmur2 % 4` first and
to `murmur2 % 6` later. These are the key's homes; the *rank* of a record is the index of the first home that it is in.
No producer goes back to fewer partitions, so each one wrote a key's records to the homes in turn: ordering by (rank,
offset) keeps its order. (Two independent producers never had an order between them.) Two kinds of records do not fit
this order: those in no home of their key (*misplaced*: another partitioner wrote them), and those in a home that the
key has left and come back to (*returning*: possible with 4 to 6 to 8, impossible with doubling).

**Steps.** A step is copied in one go: the records of one rank in a range of offsets of each partition, by (old
partition, offset). A key has one home per rank, so within a rank the steps may cut partitions anywhere.

**Cuts.** The records that a group has read are a prefix of every old partition. It reads each record exactly once
across the cut-over if they are also a prefix of every new partition; therefore no step crosses a *cut*: cut i has, for
each partition, the i-th smallest of all groups' offsets. If the groups are ordered (of any two, one is not behind the
other in any partition), the cuts are exactly the groups' positions. A cut is kept only if no record before it follows,
in its key's order, a record after it; such a group has read a key's later records before its earlier ones, and any
copy that keeps the key's order makes it read some records twice.

So a group continues at the first record, in the order of the copy, that it has not read: it reads every unread record,
and none twice if its offsets are a cut that was kept and earlier rounds contain no record that it had not read.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.base.ids import TopicPartition
from barnabas.wire.records.arrow_hashes import murmur2
from pyspark_barnabas.source.range_splitting import share_limit

Longs: TypeAlias = npt.NDArray[np.int64]
#: An offset for each old partition.
Offsets: TypeAlias = Mapping[int, int]

_POSITIVE = np.uint32(0x7FFFFFFF)


class RekeyError(ValueError):
    """A topic cannot be copied as requested, or a copy cannot be continued."""


class CopyStep(NamedTuple):
    """Records that are copied in one transaction per new partition: those of a rank with low <= offset < high."""

    rank: int
    ranges: tuple[tuple[int, int, int], ...]  #: partition, low, high

    @property
    def offsets_count(self) -> int:
        """Number of offsets that the step covers."""
        return sum(high - low for _, low, high in self.ranges)


class Placed(NamedTuple):
    """Where records go; each field is an array with one element per record."""

    target: Longs  #: the new partition
    rank: Longs  #: 0 for records that are misplaced
    is_misplaced: npt.NDArray[np.bool_]
    is_returning: npt.NDArray[np.bool_]
    has_moved: npt.NDArray[np.bool_]  #: whether the key has more than one home


@dataclass(frozen=True)
class Homes:
    """Partition counts of the topic, from its creation until now, and of the new topic."""

    counts: tuple[int, ...]
    target_count: int

    @classmethod
    def of(cls, was: Sequence[int], now: int, target_count: int) -> "Homes":
        """Build from the earlier counts `was` and the current count `now`.

        :raises RekeyError: The counts do not grow.
        """
        counts = tuple(dict.fromkeys([*was, now]))
        if list(counts) != sorted(counts) or min(counts) < 1:
            message = (
                f"invalid partition counts: earlier {', '.join(map(str, was))}, now {now}; each count must be "
                "larger than the one before"
            )
            raise RekeyError(message)
        return cls(counts, target_count)

    def locate(self, keys: pa.Array, partitions: Longs) -> Placed:
        """Find the targets of records. Records without a key keep their partition index, modulo the target count."""
        keyed = keys.is_valid().to_numpy(zero_copy_only=False)
        hashes = (murmur2(keys) & _POSITIVE).astype(np.int64)
        homes = np.stack([hashes % count for count in self.counts])
        is_home = np.where(keyed, homes == partitions, partitions < np.array(self.counts)[:, None])
        rank = np.argmax(is_home, axis=0)
        moved = keyed & (homes != homes[0]).any(axis=0)
        away = np.zeros(len(partitions), np.bool_)
        returning = np.zeros(len(partitions), np.bool_)
        for number in range(len(self.counts)):
            reached = number > rank
            returning |= reached & away & is_home[number]
            away |= reached & ~is_home[number]
        return Placed(
            np.where(keyed, hashes % self.target_count, partitions % self.target_count),
            rank.astype(np.int64),
            keyed & ~is_home.any(axis=0),
            keyed & returning & is_home.any(axis=0),
            moved,
        )

    def can_contain(self, rank: int, partition: int) -> bool:
        """Whether a partition can contain records of this rank, judging by the partition counts alone."""
        if rank == 0:
            return True  # other partitioners can have misplaced records anywhere
        before, count = self.counts[rank - 1 : rank + 1]
        doubled = all(more % few == 0 for few, more in pairwise(self.counts[: rank + 1]))
        return partition < count and (partition >= before or not doubled)


def cuts_of(groups: Collection[Offsets], starts: Offsets, ends: Offsets) -> list[dict[int, int]]:
    """Return the cuts of these groups' offsets strictly between starts and ends, the earliest first."""
    columns = {
        partition: sorted(min(max(group.get(partition, start), start), ends[partition]) for group in groups)
        for partition, start in starts.items()
    }
    cuts: list[dict[int, int]] = []
    for number in range(len(groups)):
        cut = {partition: column[number] for partition, column in columns.items()}
        if cut not in (dict(starts), dict(ends), *cuts[-1:]):
            cuts.append(cut)
    return cuts


def levels(cuts: Sequence[Offsets], partitions: Longs, offsets: Longs) -> Longs:
    """Return for each record the number of cuts before it."""
    count = int(partitions.max(initial=-1)) + 1
    record_levels = np.zeros(len(offsets), np.int64)
    for cut in cuts:
        table = np.array([cut.get(partition, 0) for partition in range(count)], np.int64)
        record_levels += offsets >= table[partitions]
    return record_levels


def kept_cuts(cuts: Sequence[Offsets], broken: Iterable[tuple[int, int]]) -> list[Offsets]:
    """Return the cuts without those whose index is in `first <= index < last` of any pair.

    A pair is the level of a record, and the higher level of a record that comes before it in its key's order.
    """
    removed = {number for first, last in broken for number in range(first, last)}
    return [cut for number, cut in enumerate(cuts) if number not in removed]


def plan_steps(
    homes: Homes, starts: Offsets, ends: Offsets, cuts: Sequence[Offsets], records_max: int
) -> list[CopyStep]:
    """Return the steps of a round, in order; each covers about `records_max` offsets."""
    steps = []
    bounds = [starts, *cuts, ends]
    for low, high in pairwise(bounds):
        for rank in range(len(homes.counts)):
            partitions = {
                TopicPartition("", partition): partition
                for partition in sorted(starts)
                if homes.can_contain(rank, partition) and low[partition] < high[partition]
            }
            at = {tp: low[partition] for tp, partition in partitions.items()}
            last = {tp: high[partition] for tp, partition in partitions.items()}
            while at != last:
                upto = share_limit(records_max, at, last)
                ranges = tuple((partitions[tp], at[tp], upto[tp]) for tp in at if at[tp] < upto[tp])
                steps.append(CopyStep(rank, ranges))
                at = upto
    return steps


class StepFinder:
    """Finds the step that copies a record."""

    def __init__(self, steps: Sequence[CopyStep]) -> None:
        ranges: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        for number, step in enumerate(steps):
            for partition, low, high in step.ranges:
                ranges.setdefault((step.rank, partition), []).append((low, high, number))
        self._table = {key: np.array(sorted(rows), np.int64).reshape(-1, 3).T for key, rows in ranges.items()}

    def find(self, ranks: Longs, partitions: Longs, offsets: Longs) -> Longs:
        """Return the number of the step of each record, -1 for none."""
        numbers = np.full(len(offsets), -1, np.int64)
        for (rank, partition), (lows, highs, steps) in self._table.items():
            rows = np.flatnonzero((ranks == rank) & (partitions == partition))
            at = np.searchsorted(lows, offsets[rows], "right") - 1
            inside = (at >= 0) & (offsets[rows] < highs[at])
            numbers[rows[inside]] = steps[at[inside]]
        return numbers


class CopyPosition(NamedTuple):
    """Position of a record in the order of the copy."""

    step: int
    partition: int  #: the old one
    offset: int


def unread_of(position: Offsets, starts: Offsets, ends: Offsets) -> dict[int, tuple[int, int]]:
    """Return the unread range of each partition; the whole range if the group has no committed offset."""
    unread = {}
    for partition, end in ends.items():
        low = max(position.get(partition, starts[partition]), starts[partition])
        if low < end:
            unread[partition] = (low, end)
    return unread


def read_after(position: Offsets, steps: Sequence[CopyStep], first_step: int) -> dict[int, tuple[int, int]]:
    """Return for each partition the range that a group has read and that `first_step` or later steps copy."""
    ranges: dict[int, tuple[int, int]] = {}
    for step in steps[first_step:]:
        for partition, low, high in step.ranges:
            end = min(high, position.get(partition, 0))
            if low < end:
                known = ranges.get(partition, (low, end))
                ranges[partition] = (min(low, known[0]), max(end, known[1]))
    return ranges
