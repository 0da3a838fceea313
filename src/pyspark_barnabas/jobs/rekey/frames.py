"""Data frames of the rekey job: the old topic's records with their targets, and the new topic's offsets."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pyspark_barnabas.jobs.rekey.order import (
    CopyPosition,
    CopyStep,
    Homes,
    Longs,
    Offsets,
    StepFinder,
    levels,
)

#: Of each partition: low <= offset < high.
Ranges: TypeAlias = Mapping[int, tuple[int, int]]

_HEADERS = "headers array<struct<key:string,value:binary>>"
_COPIED = f"key binary, value binary, partition int, offset bigint, timestamp timestamp, {_HEADERS}"
_KEYS = "key binary, partition int, offset bigint"


class Misfits(NamedTuple):
    """Number of records of a round that do not fit the order, and partition counts that would explain them."""

    misplaced: int
    returning: int
    #: Partition counts that all misplaced records fit.
    fitting: tuple[int, ...]


class Records:
    """The records of the old topic."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str], source: str, homes: Homes) -> None:
        """:param options: Options of the source, without those that select topics and offsets."""
        self._spark = spark
        self._options = options
        self._source = source
        self._homes = homes

    def of_step(self, step: CopyStep) -> DataFrame:
        """Return a step's records in the sink's columns: one task per new partition, in the order of the copy."""
        ranges = {partition: (low, high) for partition, low, high in step.ranges}
        step_records = self._mapped(
            ranges, _COPIED, partial(_step_records, self._homes, step.rank), f"{_COPIED}, target int"
        )
        ordered = step_records.repartitionById(self._homes.target_count, "target").sortWithinPartitions(
            "partition", "offset"
        )
        return ordered.selectExpr("key", "value", "headers", "timestamp", "target as partition")

    def misfits(self, ranges: Ranges) -> Misfits:
        """Count the records that do not fit the order."""
        counted = self._mapped(ranges, _KEYS, partial(_misfits, self._homes), "kind string, count bigint")
        sums = {row[0]: row[1] for row in counted.groupBy("kind").sum("count").collect()}
        misplaced = sums.get("misplaced", 0)
        candidates = range(1, self._homes.counts[-1])
        fitting = tuple(count for count in candidates if misplaced and sums.get(str(count), 0) == misplaced)
        return Misfits(misplaced, sums.get("returning", 0), fitting)

    def broken_levels(self, ranges: Ranges, cuts: Sequence[Offsets]) -> list[tuple[int, int]]:
        """Return pairs of levels: that of a record, and a higher one of a record before it in its key's order."""
        work = partial(_moved, self._homes, cuts)
        moved = self._mapped(ranges, _KEYS, work, "key binary, rank bigint, level bigint")
        spans = moved.groupBy("key", "rank").agg(f.min("level").alias("low"), f.max("level").alias("high"))
        before = (
            "max(high) over (partition by key order by rank rows between unbounded preceding and 1 preceding)"
        )
        pairs = spans.selectExpr("low", f"{before} as earlier").where("earlier > low").distinct()
        return [(row[0], row[1]) for row in pairs.collect()]

    def first_of(self, ranges: Ranges, steps: Sequence[CopyStep]) -> dict[int, CopyPosition]:
        """Return for each new partition the first record of these ranges, in the order of the copy."""
        located = self._located(ranges, steps)
        firsts = located.groupBy("target").agg(f.min(f.struct("step", "partition", "offset")))
        return {row[0]: CopyPosition(*row[1]) for row in firsts.collect()}

    def counts_within(
        self, ranges: Ranges, steps: Sequence[CopyStep], firsts: Mapping[int, CopyPosition]
    ) -> dict[int, tuple[int, int]]:
        """Count, in the step with a new partition's first record, its records and those before the first."""
        located = self._located(ranges, steps)
        of_step = _any(f"target = {target} and step = {first.step}" for target, first in firsts.items())
        before_first = _any(
            f"target = {target} and (partition, offset) < ({first.partition}, {first.offset}L)"
            for target, first in firsts.items()
        )
        counted = (
            located.where(of_step).groupBy("target").agg(f.count("*"), f.expr(f"count_if({before_first})"))
        )
        return {row[0]: (row[1], row[2]) for row in counted.collect()}

    def count_behind(
        self, ranges: Ranges, steps: Sequence[CopyStep], firsts: Mapping[int, CopyPosition], position: Offsets
    ) -> int:
        """Count the records that a group has read and that come after `firsts` in the order of the copy."""
        after = _any(
            f"target = {target} and (step, partition, offset) > ({first.step}L, {first.partition}, {first.offset}L)"
            for target, first in firsts.items()
        )
        read = _any(
            f"partition = {partition} and offset < {offset}L" for partition, offset in position.items()
        )
        return self._located(ranges, steps).where(f"({after}) and ({read})").count()

    def _located(self, ranges: Ranges, steps: Sequence[CopyStep]) -> DataFrame:
        work = partial(_located, self._homes, StepFinder(steps))
        schema = "target int, step bigint, partition int, offset bigint"
        return self._mapped(ranges, _KEYS, work, schema, failOnDataLoss="false")

    def _mapped(
        self,
        ranges: Ranges,
        columns: str,
        work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
        schema: str,
        **extra_options: str,
    ) -> DataFrame:
        options = {
            **self._options,
            **selection(self._source, ranges),
            "includeHeaders": "true",
            **extra_options,
        }
        return (
            self._spark.read.format("barnabas")
            .schema(columns)
            .options(**options)
            .load()
            .mapInArrow(work, schema)
        )


def selection(topic: str, ranges: Ranges) -> dict[str, str]:
    """Return source options that read these ranges of a topic."""
    return {
        "assign": json.dumps({topic: sorted(ranges)}),
        "startingOffsets": json.dumps({topic: {str(index): low for index, (low, _) in ranges.items()}}),
        "endingOffsets": json.dumps({topic: {str(index): high for index, (_, high) in ranges.items()}}),
        "kafka.isolation.level": "read_committed",
    }


def committed_offsets(
    spark: SparkSession, options: Mapping[str, str], topic: str, ranges: Ranges
) -> dict[int, Longs]:
    """Return the offsets of the committed records in these ranges, sorted, by partition."""
    source_options = {**options, **selection(topic, ranges)}
    schema = "partition int, offset bigint"
    table = spark.read.format("barnabas").schema(schema).options(**source_options).load().toArrow()
    partitions = table["partition"].to_numpy()
    offsets = table["offset"].to_numpy()
    return {partition: np.sort(offsets[partitions == partition]) for partition in ranges}


def _any(conditions: Iterator[str]) -> str:
    return " or ".join(f"({condition})" for condition in conditions) or "false"


def _ints(batch: pa.RecordBatch, name: str) -> Longs:
    values: Longs = batch.column(name).to_numpy(zero_copy_only=False).astype(np.int64)
    return values


def _step_records(homes: Homes, rank: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        placement = homes.locate(batch.column("key"), _ints(batch, "partition"))
        targets = pa.array(placement.target.astype(np.int32))
        rows = batch.append_column("target", targets)
        yield rows.filter(pa.array(placement.rank == rank))


def _misfits(homes: Homes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        partitions = _ints(batch, "partition")
        placement = homes.locate(batch.column("key"), partitions)
        misplaced = np.flatnonzero(placement.is_misplaced)
        counts_by_kind = {"misplaced": len(misplaced), "returning": int(placement.is_returning.sum())}
        if len(misplaced):
            keys = batch.column("key").take(pa.array(misplaced))
            for count in range(1, homes.counts[-1]):
                fits = ~Homes((count,), 1).locate(keys, partitions[misplaced]).is_misplaced
                counts_by_kind[str(count)] = int(fits.sum())
        names, counts = zip(*counts_by_kind.items(), strict=True)
        yield pa.record_batch({"kind": pa.array(names), "count": pa.array(counts, pa.int64())})


def _moved(
    homes: Homes, cuts: Sequence[Offsets], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        partitions = _ints(batch, "partition")
        placement = homes.locate(batch.column("key"), partitions)
        level = levels(cuts, partitions, _ints(batch, "offset"))
        rows = pa.record_batch(
            {"key": batch.column("key"), "rank": pa.array(placement.rank), "level": pa.array(level)}
        )
        yield rows.filter(pa.array(placement.has_moved))


def _located(homes: Homes, finder: StepFinder, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        partitions, offsets = _ints(batch, "partition"), _ints(batch, "offset")
        placement = homes.locate(batch.column("key"), partitions)
        yield pa.record_batch(
            {
                "target": pa.array(placement.target.astype(np.int32)),
                "step": pa.array(finder.find(placement.rank, partitions, offsets)),
                "partition": batch.column("partition"),
                "offset": batch.column("offset"),
            }
        )
