"""A keyed topic into a new one with another number of partitions, round by round, until consumers are cut over.

`rekeying` says in which order, and why that is enough. A step is written by the exactly-once sink under its number, so
that a step that was committed, in whole or in part, is not written again whoever was killed; its plan is kept first.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from barnabas.client.core.metadata import TopicInfo
from pyspark_barnabas.jobs.common.session import progress
from pyspark_barnabas.jobs.rekey.frames import Records, committed_offsets
from pyspark_barnabas.jobs.rekey.order import (
    CopyPosition,
    CopyStep,
    Homes,
    RekeyError,
    cuts_of,
    kept_cuts,
    plan_steps,
    read_after,
    unread_of,
)
from pyspark_barnabas.jobs.rekey.state import Copying, RekeyDirectory
from pyspark_barnabas.jobs.rekey.topics import COPYING_SETTINGS, Topics
from pyspark_barnabas.source.options import batch_options

#: Offsets that a step looks at: some seconds' work, as its transactions are open for so long.
STEP_RECORDS = 1_000_000
_OWN = frozenset({"subscribe", "subscribepattern", "assign", "kafka.isolation.level", "transport"})


@dataclass(frozen=True)
class RekeyRequest:
    """What is to be copied, and how."""

    source: str
    target: str
    was: tuple[int, ...] = ()  #: partitions that the source had before, from its creation on
    partitions: int | None = None  #: of the target; None for as many as the source has
    groups: tuple[str, ...] = ()  #: whom to cut over; empty for all that have committed offsets of the source
    any_place: bool = False  #: copy records, too, that are in no home of their key
    step_records: int = STEP_RECORDS


class Translated(NamedTuple):
    """Where a group goes on in the target."""

    group: str
    offsets: Mapping[int, int]  #: by the target's partitions
    unread_count: int  #: offsets of the source that it had not read
    again_count: int  #: records that it had read, and reads once more


@dataclass(frozen=True)
class Rekeyed:
    """What a run did, or would do."""

    source: str
    target: str
    partitions: tuple[int, ...]  #: those that the source had, one after the other
    target_partitions: int
    resumed_count: int  #: steps of an earlier run that were gone on with
    steps: tuple[CopyStep, ...]  #: of this run
    groups: tuple[Translated, ...] = ()
    is_cut_over: bool = False
    dry_run: bool = False

    @property
    def offsets_count(self) -> int:
        """Offsets of the source that this run's steps look at."""
        return sum(step.offsets_count for step in self.steps)


def rekey(
    spark: SparkSession | None,
    options: Mapping[str, str],
    wanted: RekeyRequest,
    directory: Path,
    *,
    cut_over: bool = False,
    dry_run: bool = False,
) -> Rekeyed:
    """Copy what is new since the last round; with `cut_over` let the groups go on in the target, and be done.

    :param options: Of the Spark source: brokers and logins, nothing that says what to read.
    :param directory: Where the state of this copy is kept, a new one for a new copy.
    :raises RekeyError: When that cannot be, or would break the order of a key.
    """
    for name in options:
        if name.lower() in _OWN or name.lower().startswith(("starting", "ending")):
            message = f"option '{name}' cannot be given: what to read is the job's own"
            raise RekeyError(message)
    connection = batch_options({**options, "subscribe": wanted.source}).connection
    store = RekeyDirectory(directory)
    with nullcontext() if dry_run else store.locked(), Topics(connection) as topics:
        job = _Job(topics, dict(options), wanted, store)
        if spark is None or dry_run:
            return job.plan(cut_over=cut_over)
        return job.run(spark, cut_over=cut_over)


class _Job:
    """One run."""

    def __init__(
        self, topics: Topics, options: dict[str, str], wanted: RekeyRequest, store: RekeyDirectory
    ) -> None:
        self._topics = topics
        self._options = options
        self._wanted = wanted
        self._store = store
        self._source = self._find_source()
        self._count = len(self._source.partitions)
        found = store.read()
        self._is_new = found is None
        self._state = found or self._begun()
        self._check_same()

    def plan(self, *, cut_over: bool) -> Rekeyed:
        """What a run would do; cuts are those that groups would ask for."""
        state = self._state
        if state.is_cut_over:
            return self._done(0, 0, (), dry_run=True)
        ends = self._topics.ends(state.source, self._count, committed=True)
        positions = self._positions() if cut_over else {}
        steps = self._steps(ends, cuts_of(list(positions.values()), state.ends, ends))
        groups = [
            Translated(name, {}, _offsets_count(unread_of(each, state.starts, ends)), 0)
            for name, each in positions.items()
        ]
        resumed = len(state.steps) - state.done
        return self._done(resumed, len(state.steps), groups, steps=steps, dry_run=True)

    def run(self, spark: SparkSession, *, cut_over: bool) -> Rekeyed:
        """Do it."""
        state = self._state
        if state.is_cut_over:
            return self._done(0, len(state.steps), ())
        if self._is_new:
            self._store.write(state)
        if self._topics.find(state.target) is None:
            self._topics.create(state.target, state.homes.target_count, self._source)
        records = Records(spark, self._options, state.source, state.homes)
        resumed = len(state.steps) - state.done
        self._copy(spark, records)
        first = len(state.steps)
        positions = self._stopped_positions() if cut_over else {}
        self._plan_round(spark, records, list(positions.values()))
        self._copy(spark, records)
        if not cut_over:
            return self._done(resumed, first, ())
        self._check_quiet()
        with progress(spark, "translating"):
            groups = _Translator(spark, records, self._options, state, self._topics).translate(
                self._stopped_positions()
            )
        for each in groups:
            self._topics.commit(each.group, state.target, each.offsets)
        self._topics.configure(state.target, state.settings)
        state.is_cut_over = True
        self._store.write(state)
        return self._done(resumed, first, groups)

    def _find_source(self) -> TopicInfo:
        found = self._topics.find(self._wanted.source)
        if found is None:
            message = f"there is no topic '{self._wanted.source}'"
            raise RekeyError(message)
        return found

    def _begun(self) -> Copying:
        wanted = self._wanted
        if self._topics.find(wanted.target) is not None:
            message = (
                f"topic '{wanted.target}' is there already: name one that is not, or the --state directory of the "
                "copy that made it"
            )
            raise RekeyError(message)
        own = self._topics.own_settings(wanted.source)
        starts = self._topics.starts(wanted.source, self._count)
        return Copying(
            wanted.source,
            self._source.topic_id.hex(),
            wanted.target,
            Homes.of(wanted.was, self._count, wanted.partitions or self._count),
            wanted.any_place,
            {key: own.get(key) for key in COPYING_SETTINGS},
            starts,
            dict(starts),
        )

    def _check_same(self) -> None:
        state, wanted = self._state, self._wanted
        if (state.source, state.target) != (wanted.source, wanted.target):
            message = f"{self._store.directory} belongs to the copy of '{state.source}' to '{state.target}'"
            raise RekeyError(message)
        if state.source_id != self._source.topic_id.hex():
            message = f"topic '{state.source}' was deleted and made anew since its copy was begun"
            raise RekeyError(message)
        was = wanted.was or state.homes.counts[:-1]
        asked = Homes.of(was, self._count, wanted.partitions or state.homes.target_count)
        if asked != state.homes:
            message = (
                f"the copy was begun with partitions {_joined(state.homes.counts)} to {state.homes.target_count}, and "
                f"would go on with {_joined(asked.counts)} to {asked.target_count}: begin anew in another directory"
            )
            raise RekeyError(message)
        state.any_place |= wanted.any_place

    def _positions(self) -> dict[str, dict[int, int]]:
        return self._topics.positions(self._state.source, self._wanted.groups)

    def _stopped_positions(self) -> dict[str, dict[int, int]]:
        found = self._positions()
        self._topics.check_stopped(found)
        return found

    def _steps(self, ends: Mapping[int, int], cuts: Sequence[Mapping[int, int]]) -> list[CopyStep]:
        return plan_steps(self._state.homes, self._state.ends, ends, cuts, self._wanted.step_records)

    def _plan_round(
        self, spark: SparkSession, records: Records, positions: Collection[Mapping[int, int]]
    ) -> None:
        """Settle what is new, and in which steps it is copied."""
        state = self._state
        ends = self._topics.ends(state.source, self._count, committed=True)
        new = unread_of(state.ends, state.ends, ends)
        if not new:
            return
        with progress(spark, "looking at keys"):
            if not state.any_place:
                self._check_fit(records, new)
            cuts = cuts_of(positions, state.ends, ends)
            if cuts and len(state.homes.counts) > 1:
                cuts = [dict(each) for each in kept_cuts(cuts, records.broken_levels(new, cuts))]
        state.steps += self._steps(ends, cuts)
        state.ends = ends
        self._store.write(state)

    def _check_fit(self, records: Records, new: Mapping[int, tuple[int, int]]) -> None:
        found = records.misfits(new)
        if not found.misplaced and not found.returning:
            return
        counts = _joined(self._state.homes.counts)
        if found.misplaced:
            message = (
                f"{found.misplaced} records lie where no partitioner of Java's clients puts their key, of {counts} "
                "partitions, so their order is not known"
            )
            fitting = " or ".join(f"--was {each}" for each in found.fitting)
            message += f"; {fitting} would explain all of them" if fitting else ""
        else:
            message = (
                f"{found.returning} records lie in a partition that their key has left and come back to, of {counts} "
                "partitions, so their order is not known"
            )
        raise RekeyError(f"{message}; with --any-place the order in each old partition is kept and no other")

    def _copy(self, spark: SparkSession, records: Records) -> None:
        """Write the steps that are left."""
        state = self._state
        for number in range(state.done, len(state.steps)):
            if len(state.marks) == number:
                state.marks.append(self._topics.ends(state.target, state.homes.target_count, committed=False))
                self._store.write(state)
            with progress(spark, f"step {number + 1} of {len(state.steps)}"):
                frame = records.of_step(state.steps[number])
                frame.write.format("barnabas").options(**self._sink(number)).mode("append").save()
            state.done = number + 1
            self._store.write(state)

    def _sink(self, number: int) -> dict[str, str]:
        given = {name: value for name, value in self._options.items() if name.lower().startswith("kafka.")}
        return {
            **given,
            "topic": self._state.target,
            "delivery": "exactly-once",
            "sinkName": f"barnabas-rekey-{self._state.target}",
            "batchId": str(number),
            "includeTimestamp": "true",
        }

    def _check_quiet(self) -> None:
        """See to it that nothing has been written since the last round was planned."""
        state = self._state
        if self._topics.settled_ends(state.source, self._count) != state.ends:
            message = (
                f"records came into '{state.source}' during the copy: stop its producers and run again, which copies "
                "the rest and cuts over"
            )
            raise RekeyError(message)

    def _done(
        self,
        resumed: int,
        first: int,
        groups: Sequence[Translated],
        *,
        steps: Sequence[CopyStep] | None = None,
        dry_run: bool = False,
    ) -> Rekeyed:
        state = self._state
        return Rekeyed(
            state.source,
            state.target,
            state.homes.counts,
            state.homes.target_count,
            resumed,
            tuple(state.steps[first:] if steps is None else steps),
            tuple(groups),
            state.is_cut_over,
            dry_run,
        )


class _Translator:
    """Finds where groups go on in the target, all of which is there."""

    def __init__(
        self,
        spark: SparkSession,
        records: Records,
        options: Mapping[str, str],
        state: Copying,
        topics: Topics,
    ) -> None:
        self._spark = spark
        self._records = records
        self._options = options
        self._state = state
        self._ends = topics.settled_ends(state.target, state.homes.target_count)

    def translate(self, positions: Mapping[str, Mapping[int, int]]) -> list[Translated]:
        """The offset of the first record that each group has not read, in each new partition; else its end."""
        state = self._state
        found = []
        for group, position in sorted(positions.items()):
            unread = unread_of(position, state.starts, state.ends)
            firsts = self._records.first_of(unread, state.steps) if unread else {}
            offsets = {**self._ends, **self._offsets(firsts)}
            again = self._again(firsts, position) if firsts else 0
            found.append(Translated(group, offsets, _offsets_count(unread), again))
        return found

    def _offsets(self, firsts: Mapping[int, CopyPosition]) -> dict[int, int]:
        """By counting: the target has the records of a step in the order of the copy, and nothing else."""
        state = self._state
        if not firsts:
            return {}
        ranges: dict[int, tuple[int, int]] = {}
        for number in {each.step for each in firsts.values()}:
            for partition, low, high in state.steps[number].ranges:
                known = ranges.get(partition, (low, high))
                ranges[partition] = (min(low, known[0]), max(high, known[1]))
        counts = self._records.counts_within(ranges, state.steps, firsts)
        bounds = {
            target: (state.marks[each.step][target], self._end_of(each.step, target))
            for target, each in firsts.items()
        }
        inside = {target: bounds[target] for target, (_, before) in counts.items() if before}
        stored = committed_offsets(self._spark, self._options, state.target, inside) if inside else {}
        found = {}
        for target, (low, _) in bounds.items():
            count, before = counts.get(target, (0, 0))
            # Where the source has lost records since, counting says nothing: the step's begin is never too late.
            is_exact = before and len(stored[target]) == count
            found[target] = int(stored[target][before]) if is_exact else low
        return found

    def _end_of(self, step: int, target: int) -> int:
        marks = self._state.marks
        return marks[step + 1][target] if step + 1 < len(marks) else self._ends[target]

    def _again(self, firsts: Mapping[int, CopyPosition], position: Mapping[int, int]) -> int:
        steps = self._state.steps
        ranges = read_after(position, steps, min(each.step for each in firsts.values()))
        return self._records.count_behind(ranges, steps, firsts, position) if ranges else 0


def _offsets_count(ranges: Mapping[int, tuple[int, int]]) -> int:
    return sum(high - low for low, high in ranges.values())


def _joined(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts))
