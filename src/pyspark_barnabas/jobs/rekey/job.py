"""Copy a keyed topic into a new one with another number of partitions, in rounds, until consumers are cut over.

`jobs.rekey.order` describes the order and why it is sufficient. The exactly-once sink writes each step under its
number, so that a step that was committed in whole or in part is not written again after a crash; its plan is saved
first.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

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
from pyspark_barnabas.sink.options import connecting
from pyspark_barnabas.source.options import batch_options

#: Offsets that a step covers: some seconds of work, because its transactions stay open for that long.
STEP_RECORDS = 1_000_000
_JOB_OPTIONS = frozenset({"subscribe", "subscribepattern", "assign", "kafka.isolation.level", "transport"})


@dataclass(frozen=True)
class RekeyRequest:
    """Topics to copy, and how."""

    source: str
    target: str
    was: tuple[int, ...] = ()  #: earlier partition counts of the source, from its creation on
    partitions: int | None = None  #: of the target; None for as many as the source has
    groups: tuple[
        str, ...
    ] = ()  #: groups to cut over; empty for all that have committed offsets of the source
    any_partition: bool = False  #: also copy records that are in no home of their key
    step_records: int = STEP_RECORDS


class Translated(NamedTuple):
    """Offsets at which a group continues in the target."""

    group: str
    offsets: Mapping[int, int]  #: by partition of the target
    unread_count: int  #: offsets of the source that it had not read
    again_count: int  #: records that it had read and will read again


@dataclass(frozen=True)
class Rekeyed:
    """Result of a run or a dry run."""

    source: str
    target: str
    partitions: tuple[int, ...]  #: partition counts of the source, one after the other
    target_partitions: int
    resumed_count: int  #: steps of an earlier run that this run completed
    steps: tuple[CopyStep, ...]  #: of this run
    groups: tuple[Translated, ...] = ()
    is_cut_over: bool = False
    dry_run: bool = False

    @property
    def offsets_count(self) -> int:
        """Number of source offsets that this run's steps cover."""
        return sum(step.offsets_count for step in self.steps)


def rekey(
    spark: SparkSession | None,
    options: Mapping[str, str],
    request: RekeyRequest,
    directory: Path,
    *,
    cut_over: bool = False,
    dry_run: bool = False,
) -> Rekeyed:
    """Copy the records that are new since the last round; with `cut_over`, also move the groups to the target.

    :param options: Connection options of the Spark source, without those that select topics and offsets.
    :param directory: Directory of this copy's state; a new copy needs a new directory.
    :raises RekeyError: The request is not valid, or would break the order of a key.
    """
    for name in options:
        if name.lower() in _JOB_OPTIONS or name.lower().startswith(("starting", "ending")):
            message = f"option '{name}' cannot be set: the job selects topics and offsets itself"
            raise RekeyError(message)
    connection = batch_options({**options, "subscribe": request.source}).connection
    store = RekeyDirectory(directory)
    with nullcontext() if dry_run else store.locked(), Topics(connection) as topics:
        job = _Job(topics, dict(options), request, store)
        if spark is None or dry_run:
            return job.plan(cut_over=cut_over)
        return job.run(spark, cut_over=cut_over)


class _Job:
    """One run."""

    def __init__(
        self, topics: Topics, options: dict[str, str], request: RekeyRequest, store: RekeyDirectory
    ) -> None:
        self._topics = topics
        self._options = options
        self._request = request
        self._store = store
        self._source = self._find_source()
        self._count = len(self._source.partitions)
        saved = store.read()
        self._is_new = saved is None
        self._state = saved or self._new_copy()
        self._check_same()

    def plan(self, *, cut_over: bool) -> Rekeyed:
        """Return what a run would do; all cuts of the groups are assumed to be kept."""
        state = self._state
        if state.is_cut_over:
            return self._done(0, 0, (), dry_run=True)
        ends = self._topics.ends(state.source, self._count, committed=True)
        positions = self._positions() if cut_over else {}
        steps = self._steps(ends, cuts_of(list(positions.values()), state.ends, ends))
        groups = [
            Translated(name, {}, _offsets_count(unread_of(position, state.starts, ends)), 0)
            for name, position in positions.items()
        ]
        resumed = len(state.steps) - state.done
        return self._done(resumed, len(state.steps), groups, steps=steps, dry_run=True)

    def run(self, spark: SparkSession, *, cut_over: bool) -> Rekeyed:
        state = self._state
        if state.is_cut_over:
            return self._done(0, len(state.steps), ())
        if self._is_new:
            self._store.write(state)
        if not state.steps:
            self._open_target()
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
        for translated in groups:
            self._topics.commit(translated.group, state.target, translated.offsets)
        self._topics.configure(state.target, state.settings)
        state.is_cut_over = True
        self._store.write(state)
        return self._done(resumed, first, groups)

    def _find_source(self) -> TopicInfo:
        topic = self._topics.find(self._request.source)
        if topic is None:
            message = f"topic '{self._request.source}' does not exist"
            raise RekeyError(message)
        return topic

    def _new_copy(self) -> Copying:
        request = self._request
        if self._topics.find(request.target) is not None:
            message = (
                f"topic '{request.target}' already exists: name a new topic, or give the --state directory of the copy "
                "that created it"
            )
            raise RekeyError(message)
        own = self._topics.own_settings(request.source)
        starts = self._topics.starts(request.source, self._count)
        return Copying(
            request.source,
            self._source.topic_id.hex(),
            request.target,
            f"barnabas-rekey-{uuid4().hex}",
            Homes.of(request.was, self._count, request.partitions or self._count),
            request.any_partition,
            {key: own.get(key) for key in COPYING_SETTINGS},
            starts,
            dict(starts),
        )

    def _check_same(self) -> None:
        state, request = self._state, self._request
        if (state.source, state.target) != (request.source, request.target):
            message = f"{self._store.directory} belongs to the copy of '{state.source}' to '{state.target}'"
            raise RekeyError(message)
        if state.source_id != self._source.topic_id.hex():
            message = f"topic '{state.source}' was deleted and recreated after its copy began"
            raise RekeyError(message)
        was = request.was or state.homes.counts[:-1]
        homes = Homes.of(was, self._count, request.partitions or state.homes.target_count)
        if homes != state.homes:
            message = (
                f"the copy began with partitions {_joined(state.homes.counts)} to {state.homes.target_count}, but "
                f"{_joined(homes.counts)} to {homes.target_count} were requested: start a new copy in another directory"
            )
            raise RekeyError(message)
        if state.steps and not state.is_cut_over:
            self._check_target()
        state.any_partition |= request.any_partition

    def _check_target(self) -> None:
        """Check that the target is the topic to which the planned steps were or are written."""
        state = self._state
        target = self._topics.find(state.target)
        if target is not None and target.topic_id.hex() == state.target_id:
            return
        what = "does not exist any more" if target is None else "was deleted and recreated"
        message = (
            f"topic '{state.target}' {what} after records were copied to it: start a new copy in another "
            "directory"
        )
        raise RekeyError(message)

    def _open_target(self) -> None:
        """Create the target unless an earlier run did, and save its id."""
        state = self._state
        found = self._topics.find(state.target)
        if found is None:
            target_id = self._topics.create(state.target, state.homes.target_count, self._source)
        else:
            target_id = found.topic_id
        if state.target_id != target_id.hex():
            state.target_id = target_id.hex()
            self._store.write(state)

    def _positions(self) -> dict[str, dict[int, int]]:
        return self._topics.positions(self._state.source, self._request.groups)

    def _stopped_positions(self) -> dict[str, dict[int, int]]:
        positions = self._positions()
        self._topics.check_stopped(positions)
        return positions

    def _steps(self, ends: Mapping[int, int], cuts: Sequence[Mapping[int, int]]) -> list[CopyStep]:
        return plan_steps(self._state.homes, self._state.ends, ends, cuts, self._request.step_records)

    def _plan_round(
        self, spark: SparkSession, records: Records, positions: Collection[Mapping[int, int]]
    ) -> None:
        """Decide which records are new and in which steps they are copied, and save the plan."""
        state = self._state
        ends = self._topics.ends(state.source, self._count, committed=True)
        new = unread_of(state.ends, state.ends, ends)
        if not new:
            return
        with progress(spark, "checking keys"):
            if not state.any_partition:
                self._check_fit(records, new)
            cuts = cuts_of(positions, state.ends, ends)
            if cuts and len(state.homes.counts) > 1:
                cuts = [dict(cut) for cut in kept_cuts(cuts, records.broken_levels(new, cuts))]
        state.steps += self._steps(ends, cuts)
        state.ends = ends
        self._store.write(state)

    def _check_fit(self, records: Records, new: Mapping[int, tuple[int, int]]) -> None:
        misfits = records.misfits(new)
        if not misfits.misplaced and not misfits.returning:
            return
        counts = _joined(self._state.homes.counts)
        if misfits.misplaced:
            message = (
                f"{misfits.misplaced} records are in partitions that the Java clients' partitioner does not choose for "
                "their key with "
                f"{counts} partitions, so their order is not known"
            )
            fitting = " or ".join(f"--was {count}" for count in misfits.fitting)
            message += f"; {fitting} would explain all of them" if fitting else ""
        else:
            message = (
                f"{misfits.returning} records are in a partition that their key left and returned to with {counts} "
                "partitions, so their order is not known"
            )
        raise RekeyError(f"{message}; with --any-place only the order within each old partition is kept")

    def _copy(self, spark: SparkSession, records: Records) -> None:
        """Write the remaining steps."""
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
        return {
            **connecting(self._options),
            "topic": self._state.target,
            "delivery": "exactly-once",
            "sinkName": self._state.sink_name,
            "batchId": str(number),
            "includeTimestamp": "true",
        }

    def _check_quiet(self) -> None:
        """Check that nothing has been written since the last round was planned."""
        state = self._state
        if self._topics.stable_ends(state.source, self._count) != state.ends:
            message = (
                f"records were written to '{state.source}' during the copy: stop its producers and run again, which "
                "copies the rest and cuts over"
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
    """Translates the offsets of groups to the target, after all records have been copied."""

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
        self._ends = topics.stable_ends(state.target, state.homes.target_count)

    def translate(self, positions: Mapping[str, Mapping[int, int]]) -> list[Translated]:
        """Return, per group, the offset of the first unread record of each new partition, or the partition's end."""
        state = self._state
        translated = []
        for group, position in sorted(positions.items()):
            unread = unread_of(position, state.starts, state.ends)
            firsts = self._records.first_of(unread, state.steps) if unread else {}
            offsets = {**self._ends, **self._offsets(firsts)}
            again = self._again(firsts, position) if firsts else 0
            translated.append(Translated(group, offsets, _offsets_count(unread), again))
        return translated

    def _offsets(self, firsts: Mapping[int, CopyPosition]) -> dict[int, int]:
        """Find offsets by counting: the target has the records of a step in the order of the copy, and nothing else."""
        state = self._state
        if not firsts:
            return {}
        ranges: dict[int, tuple[int, int]] = {}
        for number in {first.step for first in firsts.values()}:
            for partition, low, high in state.steps[number].ranges:
                known = ranges.get(partition, (low, high))
                ranges[partition] = (min(low, known[0]), max(high, known[1]))
        counts = self._records.counts_within(ranges, state.steps, firsts)
        bounds = {
            target: (state.marks[first.step][target], self._end_of(first.step, target))
            for target, first in firsts.items()
        }
        inside = {target: bounds[target] for target, (_, before) in counts.items() if before}
        stored = committed_offsets(self._spark, self._options, state.target, inside) if inside else {}
        offsets = {}
        for target, (low, _) in bounds.items():
            count, before = counts.get(target, (0, 0))
            # If the source has lost records since, counting is not possible: the step's start is never too late.
            is_exact = before and len(stored[target]) == count
            offsets[target] = int(stored[target][before]) if is_exact else low
        return offsets

    def _end_of(self, step: int, target: int) -> int:
        marks = self._state.marks
        return marks[step + 1][target] if step + 1 < len(marks) else self._ends[target]

    def _again(self, firsts: Mapping[int, CopyPosition], position: Mapping[int, int]) -> int:
        steps = self._state.steps
        ranges = read_after(position, steps, min(first.step for first in firsts.values()))
        return self._records.count_behind(ranges, steps, firsts, position) if ranges else 0


def _offsets_count(ranges: Mapping[int, tuple[int, int]]) -> int:
    return sum(high - low for low, high in ranges.values())


def _joined(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts))
