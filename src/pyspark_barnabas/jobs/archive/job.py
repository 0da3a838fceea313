"""Topics into a directory of Parquet files, from where the last run ended, each record once.

A run settles its ranges of offsets first, writes them, and reads both the files and the topics once more: the number
of records and a checksum of all they hold must agree for each partition and day before the run becomes visible.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from barnabas.client.admin.offsets import EARLIEST, LATEST
from pyspark_barnabas.jobs.archive.parquet_target import (
    ArchiveError,
    ArchiveManifest,
    ArchiveTarget,
    PartSum,
    open_archive,
)
from pyspark_barnabas.jobs.common.session import progress
from pyspark_barnabas.paths import pattern_of, uri
from pyspark_barnabas.source.options import batch_options
from pyspark_barnabas.source.task_planner import open_logs

_ISOLATION = "kafka.isolation.level"
#: Options of the source that a run sets itself.
_OWN = frozenset(
    name.lower()
    for side in ("starting", "ending")
    for name in (f"{side}Offsets", f"{side}OffsetsByTimestamp", f"{side}Timestamp")
)
#: Its options that say what to read.
SELECTIONS = frozenset({"subscribe", "subscribepattern", "assign"})
_DAY_MS = 86_400_000
#: Everything of a record, with what tells a null from an empty value; topic and partition by the grouping.
_HASHED = (
    "xxhash64(offset, key is null, key, value is null, value, unix_micros(timestamp), timestampType, "
    "headers is null, transform(headers, each -> struct(each.key, each.value is null, each.value)))"
)


class ArchivedRange(NamedTuple):
    """Offsets of a partition that a run reads: low <= offset < high."""

    topic: str
    partition: int
    low: int
    high: int


@dataclass(frozen=True)
class Archived:
    """What a run did, or would do; without ranges there is nothing new and no run."""

    directory: Path
    run: int
    ranges: tuple[ArchivedRange, ...]
    sums: tuple[PartSum, ...] = ()
    dry_run: bool = False

    @property
    def records_count(self) -> int:
        """Records that were written."""
        return sum(each.records_count for each in self.sums)


class _Plan(NamedTuple):
    """A manifest without sums, and the options that read what it says."""

    manifest: ArchiveManifest
    ranges: tuple[ArchivedRange, ...]
    options: dict[str, str]


def archive(
    spark: SparkSession | None,
    options: Mapping[str, str],
    directory: Path,
    *,
    kind: str = "",
    dry_run: bool = False,
) -> Archived:
    """Write what is new in the topics that the source's own options select; committed records unless they ask for all.

    A new archive is of the format `kind`: Parquet files (`parquet`, which nothing stands for) or a table (`delta`).

    A dry run needs no session.

    :raises ArchiveError: When the archive and the topics do not belong together, or a run turns out wrong.
    :raises PathError: When Spark could not read what is in the directory.
    """
    target = open_archive(directory, kind)
    if spark is None or dry_run:
        plan = _plan(target, options)
        return Archived(directory, plan.manifest.run, plan.ranges, dry_run=True)
    with target.locked():
        plan = _plan(target, options)
        if not plan.ranges:
            return Archived(directory, plan.manifest.run, ())
        staged = target.staging(plan.manifest.run)
        readable = pattern_of(staged)
        records = spark.read.format("barnabas").options(**plan.options).load()
        with progress(spark, "archiving"):
            write(records, staged)
        with progress(spark, "verifying"):
            files = spark.read.schema(dated(records).schema).parquet(readable)
            sums = verified(records, files)
        target.commit(replace(plan.manifest, sums=sums), staged)
        return Archived(directory, plan.manifest.run, plan.ranges, sums)


def _plan(target: ArchiveTarget, options: Mapping[str, str]) -> _Plan:
    given = dict(options)
    for name in given:
        if name.lower() in _OWN:
            message = (
                f"option '{name}' cannot be given: a run begins where the last one ended, and ends at the end"
            )
            raise ArchiveError(message)
    if _ISOLATION not in {name.lower() for name in given}:
        given[_ISOLATION] = "read_committed"
    parsed = batch_options(given)
    isolation = parsed.isolation.name.lower()
    before = target.newest()
    with closing(open_logs(parsed)) as logs:
        ids = {place: topic_id.hex() for place, topic_id in logs.partitions(parsed.selection).items()}
        firsts = logs.offsets(dict.fromkeys(ids, EARLIEST))
        ends = logs.offsets(dict.fromkeys(ids, LATEST))
    topic_ids = {place.topic: topic_id for place, topic_id in ids.items()}
    if before is None:
        before = ArchiveManifest(0, isolation, {}, {}, {})
    _check_same(before, isolation, topic_ids)
    starts = {place: before.ends.get(place, firsts[place]) for place in ids}
    if not parsed.fail_on_data_loss:
        starts = {place: max(start, firsts[place]) for place, start in starts.items()}
    for place, start in sorted(starts.items()):
        if not firsts[place] <= start <= ends[place]:
            message = (
                f"partition {place} has offsets {firsts[place]} to {ends[place]} now, and is archived up to {start}: "
                "records are lost; failOnDataLoss=false goes on where there are some"
            )
            raise ArchiveError(message)
    wanted = {place: start for place, start in sorted(starts.items()) if start < ends[place]}
    manifest = ArchiveManifest(
        before.run + 1, isolation, {**before.topic_ids, **topic_ids}, wanted, {**before.ends, **ends}
    )
    ranges = tuple(ArchivedRange(*place, start, ends[place]) for place, start in wanted.items())
    return _Plan(manifest, ranges, reading(given, ranges))


def reading(given: Mapping[str, str], ranges: Iterable[tuple[str, int, int, int]]) -> dict[str, str]:
    """The options that read these ranges, each a topic, a partition and two offsets, and nothing else."""
    partitions: dict[str, list[int]] = {}
    lows: dict[str, dict[str, int]] = {}
    highs: dict[str, dict[str, int]] = {}
    for topic, partition, low, high in ranges:
        partitions.setdefault(topic, []).append(partition)
        lows.setdefault(topic, {})[str(partition)] = low
        highs.setdefault(topic, {})[str(partition)] = high
    return {
        **{name: value for name, value in given.items() if name.lower() not in SELECTIONS},
        "assign": json.dumps(partitions),
        "startingOffsets": json.dumps(lows),
        "endingOffsets": json.dumps(highs),
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }


def _check_same(before: ArchiveManifest, isolation: str, topic_ids: Mapping[str, str]) -> None:
    if before.isolation != isolation:
        message = (
            f"the archive was begun with {_ISOLATION}={before.isolation}: {isolation} needs another directory"
        )
        raise ArchiveError(message)
    for topic, topic_id in topic_ids.items():
        if before.topic_ids.get(topic, topic_id) != topic_id:
            message = (
                f"topic '{topic}' was deleted and made anew since it was archived: use another directory"
            )
            raise ArchiveError(message)


def write(records: DataFrame, staged: Path) -> None:
    """Parquet files by topic and day (UTC) of the records' times."""
    with _microseconds(records.sparkSession):
        dated(records).write.partitionBy("topic", "date").parquet(uri(staged))


@contextmanager
def _microseconds(spark: SparkSession) -> Iterator[None]:
    """Have times written as everybody reads them; Spark's own choice is a type that Parquet has given up."""
    key = "spark.sql.parquet.outputTimestampType"
    before = str(spark.conf.get(key))
    spark.conf.set(key, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        spark.conf.set(key, before)


def dated(records: DataFrame) -> DataFrame:
    """The records with their day, whatever the session's time zone is."""
    day = f"cast(floor(unix_millis(timestamp) / {_DAY_MS}) as int)"
    return records.withColumn("date", f.expr(f"cast(date_add(date'1970-01-01', {day}) as string)"))


def verified(records: DataFrame, files: DataFrame) -> tuple[PartSum, ...]:
    """The sums of the files, where those of the topics are the same.

    :raises ArchiveError: When they differ.
    """
    written, there = sums_of(files), sums_of(dated(records))
    for one in sorted(set(written) ^ set(there)):
        message = (
            f"{one.topic}-{one.partition} of {one.date} is not the same in the files and in the topic, "
            "nothing was archived; where compaction came between, run again"
        )
        raise ArchiveError(message)
    return written


def sums_of(frame: DataFrame) -> tuple[PartSum, ...]:
    """A sum for each topic, day and partition; the order of rows is nothing to it."""
    hashed = frame.selectExpr(
        "cast(topic as string) topic",
        "coalesce(cast(date as string), '') date",
        "partition",
        "offset",
        f"cast({_HASHED} as decimal(20, 0)) hash",
    )
    totals = hashed.groupBy("topic", "date", "partition").agg(
        f.count("*"), f.sum("hash"), f.min("offset"), f.max("offset")
    )
    return tuple(
        sorted(
            PartSum(topic, date, partition, count, int(total) % (1 << 64), first, last)
            for topic, date, partition, count, total, first, last in map(tuple, totals.collect())
        )
    )
