"""In which order a topic's records go into one with other partitions, and where a group goes on there. No IO.

**Homes.** A topic that has grown from 4 to 6 partitions has kept a key's records in partition `murmur2 % 4`, and then
in `murmur2 % 6`. These are the key's homes; the *rank* of a record is the first home that it lies in. No producer goes
back to fewer partitions, so each wrote a key's records to the homes in turn: by (rank, offset) its own order is kept,
and that of two producers who did not know of each other was never told. Two kinds of records have no place in this
order: those in no home of their key (*misplaced*: another partitioner wrote them), and those in a home that the key has
left and come back to (*returning*: 4 to 6 to 8 can do that, doubling cannot).

**Steps.** What is copied at once is a step: the records of one rank in a range of offsets of each partition, by (old
partition, offset). A key has one home of a rank, so within a rank the steps may cut partitions anywhere.

**Cuts.** What a group has read is a beginning of every old partition. It reads each record once after the cut-over if
it is a beginning of every new partition as well, hence steps do not go beyond a *cut*: cut i has, of each partition,
the i-th smallest of all groups' offsets. Where groups are ordered (of two, one is not behind the other in any
partition) the cuts are what the groups have read. A cut is kept only if no record before it follows, in its key's
order, one behind it; such a group has read a key's later records before its earlier ones, and whatever keeps the
key's order shows it something twice.

So a group goes on at the first record, in the order of the copy, that it has not read: it reads every unread record,
and none twice if its offsets are a cut that was kept, and earlier rounds hold nothing that it had not read.
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
    """A topic that cannot be copied as asked, or a copy that cannot be gone on with."""


class CopyStep(NamedTuple):
    """What is copied by one transaction of each new partition: records of a rank with low <= offset < high."""

    rank: int
    ranges: tuple[tuple[int, int, int], ...]  #: partition, low, high

    @property
    def offsets_count(self) -> int:
        """How many offsets are looked at."""
        return sum(high - low for _, low, high in self.ranges)


class Placed(NamedTuple):
    """What becomes of some records, one array each."""

    target: Longs  #: the new partition
    rank: Longs  #: 0 for records that are misplaced
    is_misplaced: npt.NDArray[np.bool_]
    is_returning: npt.NDArray[np.bool_]
    has_moved: npt.NDArray[np.bool_]  #: whether the key has more than one home


@dataclass(frozen=True)
class Homes:
    """How many partitions the topic had, from its creation until now, and how many the new one has."""

    counts: tuple[int, ...]
    target_count: int

    @classmethod
    def of(cls, was: Sequence[int], now: int, target_count: int) -> "Homes":
        """From what the topic had before, and what it has now.

        :raises RekeyError: For counts that do not grow.
        """
        counts = tuple(dict.fromkeys([*was, now]))
        if list(counts) != sorted(counts) or min(counts) < 1:
            message = (
                f"partitions were {', '.join(map(str, was))} and are {now}: counts from the first on are "
                "expected, each larger than the one before"
            )
            raise RekeyError(message)
        return cls(counts, target_count)

    def place(self, keys: pa.Array, partitions: Longs) -> Placed:
        """Where records go. Those without a key stay where they are, as far as there is such a partition."""
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
        """Whether records of that rank can lie in a partition, as far as one can tell without looking."""
        if rank == 0:
            return True  # where others could have misplaced them
        before, count = self.counts[rank - 1 : rank + 1]
        doubled = all(more % few == 0 for few, more in pairwise(self.counts[: rank + 1]))
        return partition < count and (partition >= before or not doubled)


def cuts_of(groups: Collection[Offsets], starts: Offsets, ends: Offsets) -> list[dict[int, int]]:
    """The cuts that these groups' offsets make between starts and ends, the earliest first; none at either."""
    columns = {
        partition: sorted(min(max(each.get(partition, start), start), ends[partition]) for each in groups)
        for partition, start in starts.items()
    }
    found: list[dict[int, int]] = []
    for number in range(len(groups)):
        cut = {partition: column[number] for partition, column in columns.items()}
        if cut not in (dict(starts), dict(ends), *found[-1:]):
            found.append(cut)
    return found


def levels(cuts: Sequence[Offsets], partitions: Longs, offsets: Longs) -> Longs:
    """Behind how many of the cuts each record lies."""
    count = int(partitions.max(initial=-1)) + 1
    found = np.zeros(len(offsets), np.int64)
    for cut in cuts:
        table = np.array([cut.get(partition, 0) for partition in range(count)], np.int64)
        found += offsets >= table[partitions]
    return found


def kept_cuts(cuts: Sequence[Offsets], broken: Iterable[tuple[int, int]]) -> list[Offsets]:
    """The cuts but those from `first` to before `last` of any pair.

    A pair is the level of a record, and the higher one of a record that comes before it in its key's order.
    """
    gone = {number for first, last in broken for number in range(first, last)}
    return [cut for number, cut in enumerate(cuts) if number not in gone]


def plan_steps(
    homes: Homes, starts: Offsets, ends: Offsets, cuts: Sequence[Offsets], records_max: int
) -> list[CopyStep]:
    """The steps of a round, in order; each looks at about `records_max` offsets."""
    found = []
    bounds = [starts, *cuts, ends]
    for low, high in pairwise(bounds):
        for rank in range(len(homes.counts)):
            places = {
                TopicPartition("", partition): partition
                for partition in sorted(starts)
                if homes.can_contain(rank, partition) and low[partition] < high[partition]
            }
            at = {place: low[partition] for place, partition in places.items()}
            last = {place: high[partition] for place, partition in places.items()}
            while at != last:
                upto = share_limit(records_max, at, last)
                ranges = tuple(
                    (places[place], at[place], upto[place]) for place in at if at[place] < upto[place]
                )
                found.append(CopyStep(rank, ranges))
                at = upto
    return found


class StepFinder:
    """Tells which step copies a record; -1 for none."""

    def __init__(self, steps: Sequence[CopyStep]) -> None:
        found: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        for number, step in enumerate(steps):
            for partition, low, high in step.ranges:
                found.setdefault((step.rank, partition), []).append((low, high, number))
        self._table = {
            place: np.array(sorted(each), np.int64).reshape(-1, 3).T for place, each in found.items()
        }

    def find(self, ranks: Longs, partitions: Longs, offsets: Longs) -> Longs:
        """The number of the step of each record."""
        numbers = np.full(len(offsets), -1, np.int64)
        for (rank, partition), (lows, highs, steps) in self._table.items():
            rows = np.flatnonzero((ranks == rank) & (partitions == partition))
            at = np.searchsorted(lows, offsets[rows], "right") - 1
            inside = (at >= 0) & (offsets[rows] < highs[at])
            numbers[rows[inside]] = steps[at[inside]]
        return numbers


class CopyPosition(NamedTuple):
    """A record's place in the order of the copy."""

    step: int
    partition: int  #: the old one
    offset: int


def unread_of(position: Offsets, starts: Offsets, ends: Offsets) -> dict[int, tuple[int, int]]:
    """What of each partition a group has not read; of one that it has committed nothing for, all."""
    found = {}
    for partition, end in ends.items():
        low = max(position.get(partition, starts[partition]), starts[partition])
        if low < end:
            found[partition] = (low, end)
    return found


def read_after(position: Offsets, steps: Sequence[CopyStep], first_step: int) -> dict[int, tuple[int, int]]:
    """In which range of each partition all lies that a group has read, and that is copied from a step on."""
    found: dict[int, tuple[int, int]] = {}
    for step in steps[first_step:]:
        for partition, low, high in step.ranges:
            end = min(high, position.get(partition, 0))
            if low < end:
                before = found.get(partition, (low, end))
                found[partition] = (min(low, before[0]), max(end, before[1]))
    return found
