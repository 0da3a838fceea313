"""Archive topics as Parquet files: each run continues where the last one ended, and each record is archived once.

A run decides its offset ranges first, writes them, and then reads both the files and the topics again: the number of
records and a checksum of their contents must agree for each partition and day before the run becomes visible.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from barnabas.client.admin.offsets import EARLIEST, LATEST
from barnabas.objects.location import Location
from barnabas.objects.settings import StoreSettings
from barnabas.reading.opening import open_logs
from pyspark_barnabas.jobs.archive.archive import Staged, WritableArchive
from pyspark_barnabas.jobs.archive.manifest import ArchiveError, ArchiveManifest, PartSum
from pyspark_barnabas.jobs.archive.opening import open_archive
from pyspark_barnabas.jobs.common.session import progress
from pyspark_barnabas.source.options import batch_options

_ISOLATION = "kafka.isolation.level"
#: Options of the source that a run sets itself.
_JOB_OPTIONS = frozenset(
    name.lower()
    for side in ("starting", "ending")
    for name in (f"{side}Offsets", f"{side}OffsetsByTimestamp", f"{side}Timestamp")
)
#: Options of the source that select topics and partitions.
SELECTIONS = frozenset({"subscribe", "subscribepattern", "assign"})
_DAY_MS = 86_400_000
#: Hash of a record that distinguishes null from empty values; topic and partition come from the grouping.
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
    """Result of a run or a dry run; without ranges there was nothing new, and no run took tp."""

    directory: Location
    run: int
    ranges: tuple[ArchivedRange, ...]
    sums: tuple[PartSum, ...] = ()
    dry_run: bool = False

    @property
    def records_count(self) -> int:
        return sum(part.records_count for part in self.sums)


class _Plan(NamedTuple):
    """A manifest without sums, its ranges, and the options that read them."""

    manifest: ArchiveManifest
    ranges: tuple[ArchivedRange, ...]
    options: dict[str, str]


def archive(
    spark: SparkSession | None,
    options: Mapping[str, str],
    directory: Location,
    *,
    kind: str = "",
    settings: StoreSettings | None = None,
    dry_run: bool = False,
) -> Archived:
    """Archive the new records of the topics that the source's options select, in a directory or an object store.

    Only committed records are archived unless the options set another isolation level. `kind` is the format of a new
    archive: `parquet` (default) or `delta`. A dry run needs no session.

    :param settings: Of the object store; they precede those of the environment.
    :raises ArchiveError: The archive belongs to other topics or settings, the written files fail verification, or
        another run was complete first.
    :raises ObjectStoreError: A request to the object store failed.
    :raises PathError: Spark could not read the directory.
    """
    target = open_archive(directory, kind, settings)
    if spark is None or dry_run:
        plan = _plan(target, options)
        return Archived(directory, plan.manifest.run, plan.ranges, dry_run=True)
    with target.locked():
        plan = _plan(target, options)
        if not plan.ranges:
            return Archived(directory, plan.manifest.run, ())
        staged = target.staging(plan.manifest.run)
        records = spark.read.format("barnabas").options(**plan.options).load()
        with progress(spark, "archiving"):
            write(records, target, staged)
        with progress(spark, "verifying"):
            sums = verified(records, target.staged_rows(dated(records), staged))
        target.commit(replace(plan.manifest, sums=sums), staged)
        return Archived(directory, plan.manifest.run, plan.ranges, sums)


def _plan(target: WritableArchive[Any], options: Mapping[str, str]) -> _Plan:
    source_options = dict(options)
    for name in source_options:
        if name.lower() in _JOB_OPTIONS:
            message = f"option '{name}' cannot be set: a run starts where the last one ended, and stops at the log end"
            raise ArchiveError(message)
    if _ISOLATION not in {name.lower() for name in source_options}:
        source_options[_ISOLATION] = "read_committed"
    parsed = batch_options(source_options)
    isolation = parsed.isolation.name.lower()
    previous = target.newest()
    with closing(open_logs(parsed)) as logs:
        ids = {tp: topic_id.hex() for tp, topic_id in logs.partitions(parsed.selection).items()}
        firsts = logs.offsets(dict.fromkeys(ids, EARLIEST))
        ends = logs.offsets(dict.fromkeys(ids, LATEST))
    topic_ids = {tp.topic: topic_id for tp, topic_id in ids.items()}
    if previous is None:
        previous = ArchiveManifest(0, isolation, {}, {}, {})
    _check_same(previous, isolation, topic_ids)
    starts = {tp: previous.ends.get(tp, firsts[tp]) for tp in ids}
    if not parsed.fail_on_data_loss:
        starts = {tp: max(start, firsts[tp]) for tp, start in starts.items()}
    for tp, start in sorted(starts.items()):
        if not firsts[tp] <= start <= ends[tp]:
            message = (
                f"partition {tp} has offsets {firsts[tp]} to {ends[tp]}, but is archived up to {start}: records "
                "were lost; set failOnDataLoss=false to continue at the first offset that exists"
            )
            raise ArchiveError(message)
    new_starts = {tp: start for tp, start in sorted(starts.items()) if start < ends[tp]}
    manifest = ArchiveManifest(
        previous.run + 1,
        isolation,
        {**previous.topic_ids, **topic_ids},
        new_starts,
        {**previous.ends, **ends},
    )
    ranges = tuple(ArchivedRange(*tp, start, ends[tp]) for tp, start in new_starts.items())
    return _Plan(manifest, ranges, reading(source_options, ranges))


def reading(options: Mapping[str, str], ranges: Iterable[tuple[str, int, int, int]]) -> dict[str, str]:
    """Return source options that read exactly these ranges (topic, partition, low, high)."""
    partitions: dict[str, list[int]] = {}
    lows: dict[str, dict[str, int]] = {}
    highs: dict[str, dict[str, int]] = {}
    for topic, partition, low, high in ranges:
        partitions.setdefault(topic, []).append(partition)
        lows.setdefault(topic, {})[str(partition)] = low
        highs.setdefault(topic, {})[str(partition)] = high
    return {
        **{name: value for name, value in options.items() if name.lower() not in SELECTIONS},
        "assign": json.dumps(partitions),
        "startingOffsets": json.dumps(lows),
        "endingOffsets": json.dumps(highs),
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }


def _check_same(previous: ArchiveManifest, isolation: str, topic_ids: Mapping[str, str]) -> None:
    if previous.isolation != isolation:
        message = f"the archive has {_ISOLATION}={previous.isolation}: use another directory for {isolation}"
        raise ArchiveError(message)
    for topic, topic_id in topic_ids.items():
        if previous.topic_ids.get(topic, topic_id) != topic_id:
            message = (
                f"topic '{topic}' was deleted and recreated after it was archived: use another directory"
            )
            raise ArchiveError(message)


def write(records: DataFrame, target: WritableArchive[Staged], staged: Staged) -> None:
    """Write Parquet files, partitioned by topic and day (UTC) of the record timestamp."""
    with _microseconds(records.sparkSession):
        target.write(dated(records), staged)


@contextmanager
def _microseconds(spark: SparkSession) -> Iterator[None]:
    """Write timestamps in microseconds, which all readers support; Spark's default, INT96, is deprecated in Parquet."""
    key = "spark.sql.parquet.outputTimestampType"
    configured = str(spark.conf.get(key))
    spark.conf.set(key, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        spark.conf.set(key, configured)


def dated(records: DataFrame) -> DataFrame:
    """Add the column `date`: the day (UTC), independent of the session's time zone."""
    day = f"cast(floor(unix_millis(timestamp) / {_DAY_MS}) as int)"
    return records.withColumn("date", f.expr(f"cast(date_add(date'1970-01-01', {day}) as string)"))


def verified(records: DataFrame, files: DataFrame) -> tuple[PartSum, ...]:
    """Return the sums of the files after checking that those of the topics are equal.

    :raises ArchiveError: They differ.
    """
    written, expected = sums_of(files), sums_of(dated(records))
    for part in sorted(set(written) ^ set(expected)):
        message = (
            f"{part.topic}-{part.partition} of {part.date} differs between the files and the topic; nothing was "
            "archived. If the topic was compacted meanwhile, run again"
        )
        raise ArchiveError(message)
    return written


def sums_of(frame: DataFrame) -> tuple[PartSum, ...]:
    """Return a sum for each topic, day and partition, independent of the order of rows."""
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
