"""Restore topics from an archive into any Kafka by producing: records get new offsets, and a map lists them.

Before anything is produced, a file next to the map records where the partitions ended and which name the sink uses.
So a run after a killed one writes the same batches under the same numbers, and finished batches are not written again
(`delivery=exactly-once`). Finally the records are read from the topics and compared with the archive in order, field by
field; the result is the map.
"""

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import LATEST, ListedOffset
from barnabas.client.blocking import BlockingClient
from barnabas.log.files import write_atomically
from barnabas.objects.location import Location
from barnabas.reading.connection import connected
from barnabas.wire.isolation import Isolation
from pyspark_barnabas.jobs.archive.archive import Archive
from pyspark_barnabas.jobs.archive.job import reading
from pyspark_barnabas.jobs.archive.manifest import RECORDS_DDL
from pyspark_barnabas.jobs.common.session import progress
from pyspark_barnabas.jobs.restore.offset_map import RUNS
from pyspark_barnabas.jobs.restore.plan import (
    ArchivedPart,
    Request,
    RestoreError,
    Targets,
    archived_partitions,
    check_retention,
    create_missing,
    find_targets,
)
from pyspark_barnabas.jobs.restore.state import STATE, MappedPart, RestoreState
from pyspark_barnabas.paths import pattern_of, uri
from pyspark_barnabas.sink.options import connecting

#: Records per batch of the sink; its transactions stay open until the batch is written.
_BATCH_RECORDS = 5_000_000
#: Hash of a record without its position that distinguishes null from empty values.
_HASHED = (
    "xxhash64(key is null, key, value is null, value, unix_millis(timestamp), "
    "transform(coalesce(headers, array()), each -> struct(each.key, each.value is null, each.value)))"
)


@dataclass(frozen=True)
class Mapped:
    """Result of a run or a dry run."""

    directory: Path  #: of the map
    parts: tuple[MappedPart, ...]
    created: tuple[str, ...]
    dry_run: bool = False


def restore_mapped(
    spark: SparkSession | None,
    request: Request,
    directory: Path,
    *,
    append: bool = False,
    dry_run: bool = False,
) -> Mapped:
    """Produce the records of an archive, and write a map of offsets into `directory`. A dry run needs no session.

    :param append: Whether the topics may already have records.
    :raises RestoreError: A topic does not meet the requirements, or the restored records differ from the archived ones.
    :raises PathError: Spark could not read a directory.
    """
    target = request.archive()
    pattern_of(directory)  # fail on paths that Spark cannot read before anything is produced
    with closing(connected(request.connection())) as client:
        archived = archived_partitions(target, request.topics)
        targets = find_targets(client, request, archived)
        check_retention(client, request, target, targets, time.time_ns() // 1_000_000)
        saved = RestoreState.read(directory / STATE)
        state = _begin(request, archived, targets, append=append) if saved is None else saved
        _check(state, request, archived, targets)
        if spark is None or dry_run:
            return Mapped(directory, state.parts, targets.missing, dry_run=True)
        create_missing(client, request, targets)
        if saved is None:
            directory.mkdir(parents=True, exist_ok=True)
            _save(directory, state)
        if not (directory / RUNS).exists():
            with progress(spark, "restoring"):
                _produce(spark, target, request, state, directory)
            with progress(spark, "verifying"):
                _write_map(spark, client, target, request, state, directory)
        return Mapped(directory, state.parts, targets.missing)


def _begin(
    request: Request, archived: Sequence[ArchivedPart], targets: Targets, *, append: bool
) -> RestoreState:
    parts = []
    for part in archived:
        tp = TopicPartition(request.target_of(part.topic), part.partition)
        first, end = targets.bounds_of(tp)
        if end > first and not append:
            raise RestoreError(f"partition {tp} already has records: use --append to restore behind them")
        parts.append(MappedPart(*part, tp.topic, end))
    batches_count = -(-sum(part.records_count for part in archived) // _BATCH_RECORDS)
    return RestoreState(_name(request.directory), f"restore-{uuid4().hex}", batches_count, tuple(parts))


def _check(state: RestoreState, request: Request, archived: Sequence[ArchivedPart], targets: Targets) -> None:
    """Check that the request matches the saved state of an unfinished run.

    :raises RestoreError: It does not match.
    """
    saved_names = {(part.topic, part.restored_topic) for part in state.parts}
    requested_names = {(part.topic, request.target_of(part.topic)) for part in archived}
    if state.archive != _name(request.directory) or saved_names != requested_names:
        names = ", ".join(f"{topic} as {name}" for topic, name in sorted(saved_names))
        message = f"the map belongs to a restore of {state.archive} with {names}: continue it or use another directory"
        raise RestoreError(message)
    for part in state.parts:
        tp = TopicPartition(part.restored_topic, part.partition)
        if targets.bounds_of(tp)[1] < part.begin:
            raise RestoreError(f"topic '{part.restored_topic}' was recreated after its restore began")


def _name(archive: Location) -> str:
    return str(archive.resolve() if isinstance(archive, Path) else archive)


def _save(directory: Path, state: RestoreState) -> None:
    write_atomically(directory / STATE, state.to_json().encode())


def _produce(
    spark: SparkSession, target: Archive, request: Request, state: RestoreState, directory: Path
) -> None:
    """Write the remaining batches; the sink recognizes the last batch if it was already written, but no older ones."""
    rows = _archived(spark, target, state)
    number = f.expr(f"cast(floor((offset - start) * {state.batches_count}D / (end - start)) as int)")
    options = connecting(request.options)
    for batch in range(state.done_count, state.batches_count):
        (
            rows.where(number == batch)
            .repartition(max(1, len(state.parts)), "restored_topic", "partition")
            .sortWithinPartitions("restored_topic", "partition", "offset")
            .drop("topic")
            .withColumnRenamed("restored_topic", "topic")
            .select("key", "value", "headers", "timestamp", "partition", "topic")
            .write.format("barnabas")
            .options(**options, delivery="exactly-once", sinkName=state.sink_name, batchId=str(batch))
            .options(includeTimestamp="true", **{"kafka.compression.type": request.compression.name.lower()})
            .mode("append")
            .save()
        )
        _save(directory, replace(state, done_count=batch + 1))


def _archived(spark: SparkSession, target: Archive, state: RestoreState) -> DataFrame:
    """Return the archived records to restore, joined with the state of their partitions."""
    ddl = (
        "topic string, partition int, start bigint, end bigint, records_count bigint, restored_topic string, "
        "begin bigint"
    )
    parts = spark.createDataFrame([tuple(part) for part in state.parts], ddl)
    topics = sorted({part.topic for part in state.parts})
    rows = target.records(spark, topics).join(f.broadcast(parts), ["topic", "partition"])
    return rows.where("offset >= start and offset < end")


def _write_map(
    spark: SparkSession,
    client: BlockingClient,
    target: Archive,
    request: Request,
    state: RestoreState,
    directory: Path,
) -> None:
    """Compare the produced records with the archive, one by one, and save the map of offsets.

    :raises RestoreError: They differ.
    """
    staged = directory / f"_staging-{uuid4().hex}"
    for leftover in directory.glob("_staging-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    archived = _archived(spark, target, state).selectExpr(
        "restored_topic", "partition", "topic", "offset", f"{_HASHED} hash"
    )
    restored = _restored(spark, client, request, state).selectExpr(
        "topic restored_topic", "partition", "offset restored_offset", f"{_HASHED} restored_hash"
    )
    keys = ["restored_topic", "partition"]
    left = archived.withColumn("rank", f.row_number().over(Window.partitionBy(*keys).orderBy("offset")))
    right = restored.withColumn(
        "rank", f.row_number().over(Window.partitionBy(*keys).orderBy("restored_offset"))
    )
    both = left.join(right, [*keys, "rank"], "left").withColumn("same", f.expr("hash <=> restored_hash"))
    ordered = Window.partitionBy(*keys).orderBy("rank")
    follows = f.expr("offset - 1 <=> before and restored_offset - 1 <=> restored_before")
    runs = (
        both.withColumn("before", f.lag("offset").over(ordered))
        .withColumn("restored_before", f.lag("restored_offset").over(ordered))
        .withColumn("run", f.sum(f.when(follows, 0).otherwise(1)).over(ordered))
        .groupBy("topic", *keys, "run")
        .agg(
            f.min("offset").alias("offset"),
            f.min("restored_offset").alias("restored_offset"),
            f.count("*").alias("records_count"),
            f.min("same").alias("same"),
        )
    )
    runs.write.parquet(uri(staged))
    written = spark.read.schema(runs.schema).parquet(pattern_of(staged))
    mismatch = written.where("not same").orderBy("topic", "partition", "offset").first()
    total = written.agg(f.sum("records_count")).first()
    records_count = sum(part.records_count for part in state.parts)
    if mismatch is not None or total is None or (total[0] or 0) != records_count:
        shutil.rmtree(staged, ignore_errors=True)
        position = (
            ""
            if mismatch is None
            else f" from offset {mismatch['offset']} of {mismatch['topic']}-{mismatch['partition']} on"
        )
        message = (
            f"the records in the topics differ from the archived ones{position}: no other producer may write to the "
            "topics during the restore, and their message.timestamp.type must be CreateTime"
        )
        raise RestoreError(message)
    staged.rename(directory / RUNS)


def _restored(
    spark: SparkSession, client: BlockingClient, request: Request, state: RestoreState
) -> DataFrame:
    """Return the committed records at and after the offsets at which the restore began."""
    begins = {TopicPartition(part.restored_topic, part.partition): part.begin for part in state.parts}
    ends = client.admin.list_offsets(dict.fromkeys(begins, LATEST), Isolation.READ_COMMITTED)
    ranges: list[tuple[str, int, int, int]] = []
    for tp, end in ends.items():
        if not isinstance(end, ListedOffset):
            raise end
        if end.offset > begins[tp]:
            ranges.append((*tp, begins[tp], end.offset))
    if not ranges:
        return spark.createDataFrame([], RECORDS_DDL)
    options: Mapping[str, str] = {**request.options, "kafka.isolation.level": "read_committed"}
    return spark.read.format("barnabas").options(**reading(options, ranges)).load()
