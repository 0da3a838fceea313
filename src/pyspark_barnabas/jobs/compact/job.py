"""Compact topics with Spark tasks and import the new segments into the brokers that serve them.

Tasks read keys and offsets, a window over each key finds the obsolete records, and tasks write segments without
them as the broker's cleaner does. The broker checks the segments and imports them into the log
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
    plan_partition,
    read_keys,
    slices_of,
    survey,
)
from pyspark_barnabas.option_values import OptionError
from pyspark_barnabas.source.cluster_logs import new_cluster
from pyspark_barnabas.source.file_logs import find_directories
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

#: States of a partition after the job.
IMPORTED, REFUSED, WAITING, CLEAN, BUSY = "imported", "refused", "waiting", "clean", "busy"
ELSEWHERE, DRY = "elsewhere", "dry run"
_FAILED = frozenset({REFUSED, WAITING, BUSY})


@dataclass(frozen=True)
class Compacted:
    """Result of compacting a partition."""

    topic: str
    partition: int
    #: One of the states above.
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
        """Whether the partition should have been compacted and was not."""
        return self.state in _FAILED


class _Work(NamedTuple):
    """A partition that needs compaction; without a claim (dry run) nothing is imported."""

    plan: PartitionPlan
    claim: Claim | None

    @property
    def target(self) -> Path | None:
        """Directory that tasks write to; None for temporary directories (dry run)."""
        return None if self.claim is None else self.claim.path


def compact(
    spark: SparkSession,
    options: Mapping[str, str],
    *,
    dry_run: bool = False,
    wait_s: float = 600.0,
    pause: Callable[[float], object] = time.sleep,
) -> list[Compacted]:
    """Compact those of the topics selected by the source's options that have cleanup.policy=compact.

    :param dry_run: Do all the work in temporary directories and import nothing.
    :param wait_s: How long to wait for the brokers to import the segments.
    :raises OptionError: An option is not valid, or no brokers are given.
    :raises KafkaError: A request to a broker failed.
    :raises NotBarnabas: The broker is not Barnabas.
    """
    parsed = batch_options({"kafka.isolation.level": "read_committed", **options, "transport": "files"})
    if not parsed.connection.bootstrap:
        message = (
            "option 'kafka.bootstrap.servers' is missing: topic configs and offsets are read from the brokers"
        )
        raise OptionError(message)
    with closing(connected(parsed.connection)) as client:
        check_barnabas(client, "only Barnabas brokers can import compacted segments")
    results: list[Compacted] = []
    with ExitStack() as stack:
        works = list(_begin(parsed, stack, results, pause=pause, dry_run=dry_run))
        if works:
            surveys = _survey_all(spark, [work.plan for work in works])
            cleaned = _clean_all(spark, works, surveys)
            results += _finish(works, cleaned, wait_s, pause)
    return sorted(results, key=lambda result: (result.topic, result.partition))


# Before Spark


def _begin(
    options: SourceOptions,
    stack: ExitStack,
    results: list[Compacted],
    *,
    pause: Callable[[float], object],
    dry_run: bool,
) -> Iterator[_Work]:
    """Claim the logs and plan the work; partitions without work are added to `results`."""
    with closing(open_logs(options)) as logs:
        topic_ids = logs.partitions(options.selection)
        directories = find_directories(options.log_dirs)
        configs = asyncio.run(_describe(options, {tp.topic for tp in topic_ids}))
        compacted = {name for name, values in configs.items() if log_config(values).is_compacted}
        claims: dict[TopicPartition, Claim | None] = {}
        stack.callback(_release, claims)
        for tp in sorted(tp for tp in topic_ids if tp.topic in compacted):
            if tp not in directories:
                results.append(Compacted(*tp, ELSEWHERE, why="it is in none of these log directories"))
                continue
            try:
                claims[tp] = None if dry_run else Claim(directories[tp])
            except FileExistsError as error:
                results.append(Compacted(*tp, BUSY, why=error.strerror or str(error)))
        starts, ends = (
            logs.offsets(dict.fromkeys(claims, EARLIEST)),
            logs.offsets(dict.fromkeys(claims, LATEST)),
        )
    for tp, claim in claims.items():
        directory = directories[tp]
        plan = plan_partition(
            tp,
            directory,
            topic_ids[tp],
            log_config(configs[tp.topic]),
            LogOffsets(starts[tp], ends[tp]),
            SegmentFiles(directory, pause),
            time.time_ns() // 1_000_000,
        )
        if plan is None:
            results.append(Compacted(*tp, CLEAN))
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
        responses = await Admin(cluster).describe_configs(resources, _CONFIGS)
    finally:
        await cluster.close()
    configs = {}
    for resource, entries in responses.items():
        if isinstance(entries, KafkaError):
            raise entries
        configs[resource.name] = {entry.name: entry.value for entry in entries}
    return configs


# In Spark


def _survey_all(spark: SparkSession, plans: Sequence[PartitionPlan]) -> list[Survey]:
    tasks = distribute(range(len(plans)), lambda part: plans[part].size_bytes, _tasks_max(spark))
    frame = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(
        partial(_survey_tasks, tasks, plans), "part int, survey binary"
    )
    with progress(spark, "reading headers"):
        rows = frame.toArrow().to_pylist()
    surveys: dict[int, Survey] = {row["part"]: pickle.loads(row["survey"]) for row in rows}
    return [surveys[part] for part in range(len(plans))]


def _survey_tasks(
    tasks: Sequence[Sequence[int]], plans: Sequence[PartitionPlan], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for part in tasks[number]:
                surveyed = survey(plans[part], SegmentFiles(plans[part].directory, time.sleep), TASK_BYTES)
                arrays = [pa.array([part], pa.int32()), pa.array([pickle.dumps(surveyed)], pa.binary())]
                yield pa.RecordBatch.from_arrays(arrays, names=["part", "survey"])


class _Group(NamedTuple):
    """A segment to be written: the index of its group within a partition."""

    part: int
    number: int


def _clean_all(
    spark: SparkSession, works: Sequence[_Work], surveys: Sequence[Survey]
) -> dict[int, list[Cleaned]]:
    """Write all groups; return the segments of each partition in the order of offsets."""
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
    """Return the offsets of records that have a later one with the same key in the dirty part, with their groups.

    Keys themselves are compared, or cryptographic digests of long ones.
    """
    slices: list[SegmentSlice] = []
    first_group = 0
    for part, (plan, surveyed) in enumerate(zip(plans, surveys, strict=True)):
        slices += slices_of(plan, surveyed, part, first_group)
        first_group += len(plan.groups)
    tasks_count = max(sum(plan.size_bytes for plan in plans) // TASK_BYTES, _tasks_max(spark))
    tasks = distribute(slices, lambda segment_slice: segment_slice.end - segment_slice.start, tasks_count)
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
            for segment_slice in tasks[number]:
                yield from read_keys(plans[segment_slice.part], segment_slice)


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
    """Publish the segments for import, and wait for the results."""
    for part, work in enumerate(works):
        if work.claim is not None:
            parts: tuple[ImportedSegment, ...] = tuple(segment.part for segment in cleaned[part])
            work.claim.publish(ImportManifest(work.plan.topic_id, parts, work.plan.first_dirty_offset))
    left_s = wait_s
    for part, work in enumerate(works):
        result = _result_of(work.plan, cleaned[part])
        if work.claim is None:
            yield result
            continue
        while (import_result := work.claim.outcome()) is None and left_s > 0:
            pause(_POLL_S)
            left_s -= _POLL_S
        yield _with_import_result(result, import_result)


def _with_import_result(result: Compacted, import_result: ImportResult | None) -> Compacted:
    if import_result is None:
        return replace(result, state=WAITING, why="no broker has imported it yet; it will be imported later")
    return replace(result, state=IMPORTED if import_result.imported else REFUSED, why=import_result.why)


def _result_of(plan: PartitionPlan, cleaned: Sequence[Cleaned]) -> Compacted:
    return Compacted(
        *plan.tp,
        DRY,
        plan.first_dirty_offset,
        plan.end_offset,
        len(plan.sources),
        len(cleaned),
        plan.size_bytes,
        sum(segment.part.size_bytes for segment in cleaned),
        sum(segment.records_before for segment in cleaned),
        sum(segment.records_after for segment in cleaned),
    )
