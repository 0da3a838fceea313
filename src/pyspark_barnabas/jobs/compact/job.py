"""Compacted topics cleaned by Spark's tasks, and handed to the brokers that serve them.

Tasks read keys and offsets, a window over each key tells which records are obsolete, and tasks write segments without
them as the broker's cleaner does. The broker checks what it is handed and puts it into the log
(`barnabas.log.imports.manifest`).
"""

import asyncio
import pickle
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import EARLIEST, LATEST
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.log.imports.manifest import Claim, ImportedSegment, ImportManifest, ImportResult
from barnabas.wire.errors import KafkaError
from pyspark_barnabas.jobs.common.client import check_barnabas, connected
from pyspark_barnabas.jobs.common.session import distribute, progress
from pyspark_barnabas.jobs.compact.partition import (
    KEY_ROWS_DDL,
    Cleaned,
    LogOffsets,
    PartitionPlan,
    SegmentSlice,
    Survey,
    clean_group,
    log_config,
    pieces_of,
    plan_partition,
    read_keys,
    survey,
)
from pyspark_barnabas.option_values import OptionError
from pyspark_barnabas.source.broker_offset_reader import new_cluster
from pyspark_barnabas.source.file_offset_reader import find_directories
from pyspark_barnabas.source.options import TASK_BYTES, SourceOptions, batch_options
from pyspark_barnabas.source.segment_files import SegmentFiles
from pyspark_barnabas.source.task_planner import open_logs

_TASKS_PER_CORE = 4
_CONFIGS = (
    "cleanup.policy",
    "delete.retention.ms",
    "index.interval.bytes",
    "min.compaction.lag.ms",
    "segment.bytes",
    "segment.index.bytes",
)
_TIMEOUT_MS = 30_000
_POLL_S = 0.2

#: What has become of a partition.
ADOPTED, REFUSED, WAITING, CLEAN, BUSY = "adopted", "refused", "waiting", "clean", "busy"
ELSEWHERE, DRY = "elsewhere", "dry run"
_FAILED = frozenset({REFUSED, WAITING, BUSY})


@dataclass(frozen=True)
class Compacted:
    """What was done with a partition."""

    topic: str
    partition: int
    #: One of the words above.
    state: str
    first_dirty_offset: int = 0
    end_offset: int = 0
    segments_before: int = 0
    segments_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    records_before: int = 0
    records_after: int = 0
    why: str = ""

    @property
    def is_failed(self) -> bool:
        """Whether the log is not as it should be now."""
        return self.state in _FAILED


class _Work(NamedTuple):
    """A partition that has something to be compacted; without a claim nothing is handed over."""

    plan: PartitionPlan
    claim: Claim | None

    @property
    def target(self) -> Path | None:
        """Where tasks write to; to directories of their own without it."""
        return None if self.claim is None else self.claim.path


def compact(
    spark: SparkSession,
    options: Mapping[str, str],
    *,
    dry_run: bool = False,
    wait_s: float = 600.0,
    pause: Callable[[float], object] = time.sleep,
) -> list[Compacted]:
    """Compact the topics among those that the source's own options select which are compacted.

    :param dry_run: Do all the work, beside the logs, and hand nothing over.
    :param wait_s: How long to wait for the brokers to take over what was handed to them.
    :raises OptionError: For an option that cannot be, or without brokers.
    :raises KafkaError: When brokers cannot be asked.
    :raises NotBarnabas: For another broker.
    """
    parsed = batch_options({"kafka.isolation.level": "read_committed", **options, "transport": "files"})
    if not parsed.connection.bootstrap:
        message = "option 'kafka.bootstrap.servers' is missing: brokers tell what is compacted, and how"
        raise OptionError(message)
    with closing(connected(parsed.connection)) as client:
        check_barnabas(client, "no other takes over what was compacted beside its log")
    done: list[Compacted] = []
    with ExitStack() as stack:
        works = list(_begin(parsed, stack, done, pause=pause, dry_run=dry_run))
        if works:
            surveys = _survey_all(spark, [work.plan for work in works])
            cleaned = _clean_all(spark, works, surveys)
            done += _finish(works, cleaned, wait_s, pause)
    return sorted(done, key=lambda each: (each.topic, each.partition))


# Before Spark


def _begin(
    options: SourceOptions,
    stack: ExitStack,
    done: list[Compacted],
    *,
    pause: Callable[[float], object],
    dry_run: bool,
) -> Iterator[_Work]:
    """Claim the logs and look what there is to do; what is done with at once is added to `done`."""
    with closing(open_logs(options)) as logs:
        topic_ids = logs.partitions(options.selection)
        directories = find_directories(options.log_dirs)
        configs = asyncio.run(_describe(options, {place.topic for place in topic_ids}))
        compacted = {name for name, values in configs.items() if log_config(values).is_compacted}
        claims: dict[TopicPartition, Claim | None] = {}
        stack.callback(_release, claims)
        for place in sorted(place for place in topic_ids if place.topic in compacted):
            if place not in directories:
                done.append(Compacted(*place, ELSEWHERE, why="it lies in none of these log directories"))
                continue
            try:
                claims[place] = None if dry_run else Claim(directories[place])
            except FileExistsError as error:
                done.append(Compacted(*place, BUSY, why=error.strerror or str(error)))
        starts, ends = (
            logs.offsets(dict.fromkeys(claims, EARLIEST)),
            logs.offsets(dict.fromkeys(claims, LATEST)),
        )
    for place, claim in claims.items():
        directory = directories[place]
        plan = plan_partition(
            place,
            directory,
            topic_ids[place],
            log_config(configs[place.topic]),
            LogOffsets(starts[place], ends[place]),
            SegmentFiles(directory, pause),
            time.time_ns() // 1_000_000,
        )
        if plan is None:
            done.append(Compacted(*place, CLEAN))
            continue
        yield _Work(plan, claim)


def _release(claims: Mapping[TopicPartition, Claim | None]) -> None:
    for claim in claims.values():
        if claim is not None:
            claim.release()


async def _describe(options: SourceOptions, topics: set[str]) -> dict[str, dict[str, str | None]]:
    cluster = new_cluster(options.connection, _TIMEOUT_MS)
    try:
        resources = [Resource(ResourceKind.TOPIC, topic) for topic in topics]
        found = await Admin(cluster).describe_configs(resources, _CONFIGS)
    finally:
        await cluster.close()
    described = {}
    for resource, entries in found.items():
        if isinstance(entries, KafkaError):
            raise entries
        described[resource.name] = {each.name: each.value for each in entries}
    return described


# In Spark


def _survey_all(spark: SparkSession, plans: Sequence[PartitionPlan]) -> list[Survey]:
    tasks = distribute(range(len(plans)), lambda part: plans[part].size_bytes, _tasks_max(spark))
    frame = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(
        partial(_survey_tasks, tasks, plans), "part int, found binary"
    )
    with progress(spark, "reading headers"):
        rows = frame.toArrow().to_pylist()
    found: dict[int, Survey] = {row["part"]: pickle.loads(row["found"]) for row in rows}
    return [found[part] for part in range(len(plans))]


def _survey_tasks(
    tasks: Sequence[Sequence[int]], plans: Sequence[PartitionPlan], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for part in tasks[number]:
                found = survey(plans[part], SegmentFiles(plans[part].directory, time.sleep), TASK_BYTES)
                arrays = [pa.array([part], pa.int32()), pa.array([pickle.dumps(found)], pa.binary())]
                yield pa.RecordBatch.from_arrays(arrays, names=["part", "found"])


class _Group(NamedTuple):
    """A segment that is to be written: the one of that index of a partition."""

    part: int
    number: int


def _clean_all(
    spark: SparkSession, works: Sequence[_Work], surveys: Sequence[Survey]
) -> dict[int, list[Cleaned]]:
    """What was written for each partition, in the order of offsets."""
    plans = [work.plan for work in works]
    groups = [_Group(part, index) for part, plan in enumerate(plans) for index in range(len(plan.groups))]
    count = min(len(groups), 4 * _tasks_max(spark))
    numbers = spark.range(len(groups)).select(f.col("id").cast("int").alias("grp")).repartition(count, "grp")
    obsolete = _obsolete(spark, plans, surveys).repartition(count, "grp")
    clean = partial(_clean_task, groups, plans, surveys, [work.target for work in works])
    frame = (
        numbers.groupBy("grp").cogroup(obsolete.groupBy("grp")).applyInArrow(clean, "grp int, cleaned binary")
    )
    with progress(spark, "compacting"):
        rows = frame.toArrow().to_pylist()
    cleaned: dict[int, list[Cleaned]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["grp"]):
        cleaned[groups[row["grp"]].part].append(pickle.loads(row["cleaned"]))
    return cleaned


def _obsolete(spark: SparkSession, plans: Sequence[PartitionPlan], surveys: Sequence[Survey]) -> DataFrame:
    """The offsets of the records that have a later one with the same key in the dirty part, with their groups.

    Keys themselves are compared, or digests that nobody can make another key for.
    """
    pieces: list[SegmentSlice] = []
    first_group = 0
    for part, (plan, surveyed) in enumerate(zip(plans, surveys, strict=True)):
        pieces += pieces_of(plan, surveyed, part, first_group)
        first_group += len(plan.groups)
    tasks_count = max(sum(plan.size_bytes for plan in plans) // TASK_BYTES, _tasks_max(spark))
    tasks = distribute(pieces, lambda piece: piece.end - piece.start, tasks_count)
    keys = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(
        partial(_key_tasks, tasks, plans), KEY_ROWS_DDL
    )
    latest = f.max(f.when(f.col("dirty"), f.col("offset"))).over(Window.partitionBy("part", "key"))
    return keys.withColumn("latest", latest).where("offset < latest").select("grp", "offset")


def _key_tasks(
    tasks: Sequence[Sequence[SegmentSlice]], plans: Sequence[PartitionPlan], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for piece in tasks[number]:
                yield from read_keys(plans[piece.part], piece)


def _clean_task(
    groups: Sequence[_Group],
    plans: Sequence[PartitionPlan],
    surveys: Sequence[Survey],
    targets: Sequence[Path | None],
    numbers: pa.Table,
    obsolete: pa.Table,
) -> pa.Table:
    number = numbers.column("grp")[0].as_py()
    part, index = groups[number]
    offsets = obsolete.column("offset").to_numpy().astype(np.int64)
    with TemporaryDirectory(prefix="barnabas-compact-") as scratch:
        cleaned = clean_group(plans[part], surveys[part], index, offsets, targets[part] or Path(scratch))
    return pa.table(
        {"grp": pa.array([number], pa.int32()), "cleaned": pa.array([pickle.dumps(cleaned)], pa.binary())}
    )


def _tasks_max(spark: SparkSession) -> int:
    cores = spark.conf.get("spark.default.parallelism", None) or spark.sparkContext.defaultParallelism
    return _TASKS_PER_CORE * int(cores)


# After Spark


def _finish(
    works: Sequence[_Work],
    cleaned: Mapping[int, Sequence[Cleaned]],
    wait_s: float,
    pause: Callable[[float], object],
) -> Iterator[Compacted]:
    """Hand over, and wait for what the brokers make of it."""
    for part, work in enumerate(works):
        if work.claim is not None:
            parts: tuple[ImportedSegment, ...] = tuple(each.part for each in cleaned[part])
            work.claim.publish(ImportManifest(work.plan.topic_id, parts, work.plan.first_dirty_offset))
    left_s = wait_s
    for part, work in enumerate(works):
        done = _described(work.plan, cleaned[part])
        if work.claim is None:
            yield done
            continue
        while (outcome := work.claim.outcome()) is None and left_s > 0:
            pause(_POLL_S)
            left_s -= _POLL_S
        yield _with_outcome(done, outcome)


def _with_outcome(done: Compacted, outcome: ImportResult | None) -> Compacted:
    if outcome is None:
        return replace(done, state=WAITING, why="no broker has taken it over yet; it will when it looks")
    return replace(done, state=ADOPTED if outcome.adopted else REFUSED, why=outcome.why)


def _described(plan: PartitionPlan, cleaned: Sequence[Cleaned]) -> Compacted:
    return Compacted(
        *plan.place,
        DRY,
        plan.first_dirty_offset,
        plan.end_offset,
        len(plan.sources),
        len(cleaned),
        plan.size_bytes,
        sum(each.part.size_bytes for each in cleaned),
        sum(each.records_before for each in cleaned),
        sum(each.records_after for each in cleaned),
    )
