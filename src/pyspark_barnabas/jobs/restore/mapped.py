"""Topics back from an archive into any Kafka, by producing: offsets are new ones, and a map tells which.

Before anything is produced, a file beside the map says where the partitions ended and under which name the sink
writes. So a run after a killed one writes the same batches under the same numbers, and those that are done are not
written again (`delivery=exactly-once`). In the end the records are read from the topics and held against the archive,
the first against the first and so on, field by field; what comes of it is the map.
"""

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import LATEST, Isolation, ListedOffset
from barnabas.client.blocking import BlockingClient
from barnabas.log.files import write_atomically
from pyspark_barnabas.jobs.archive.job import reading
from pyspark_barnabas.jobs.archive.parquet_target import RECORDS_DDL, ArchiveTarget, open_archive
from pyspark_barnabas.jobs.common.client import connected
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
from pyspark_barnabas.paths import pattern_of, uri

STATE = "_restore.json"
_VERSION = 1
#: Records of a batch of the sink, whose transactions are open until it is written.
_BATCH_RECORDS = 5_000_000
#: All of a record but where it is, with what tells a null from an empty value.
_HASHED = (
    "xxhash64(key is null, key, value is null, value, unix_millis(timestamp), "
    "transform(coalesce(headers, array()), each -> struct(each.key, each.value is null, each.value)))"
)


class MappedPart(NamedTuple):
    """A partition that is restored: offsets [start, end) of the archive, behind `begin` in the topic."""

    topic: str  #: of the archive
    partition: int
    start: int
    end: int
    records_count: int
    restored_topic: str
    begin: int


@dataclass(frozen=True)
class Mapped:
    """What a run did, or would do."""

    directory: Path  #: of the map
    parts: tuple[MappedPart, ...]
    created: tuple[str, ...]
    dry_run: bool = False


@dataclass(frozen=True)
class _State:
    """What a run after this one must know."""

    archive: str
    sink_name: str
    batches_count: int
    parts: tuple[MappedPart, ...]
    done_count: int = 0  #: so many batches are written, and perhaps one more

    def to_json(self) -> str:
        parts = [each._asdict() for each in self.parts]
        fields = {
            "version": _VERSION,
            "archive": self.archive,
            "sinkName": self.sink_name,
            "batches": self.batches_count,
            "done": self.done_count,
            "parts": parts,
        }
        return json.dumps(fields, indent=1)

    @classmethod
    def read(cls, path: Path) -> "_State | None":
        if not path.exists():
            return None
        try:
            fields: dict[str, Any] = json.loads(path.read_text())
            if fields["version"] != _VERSION:
                raise ValueError(f"version {fields['version']}, where {_VERSION} is known")
            parts = tuple(MappedPart(**each) for each in fields["parts"])
            return cls(fields["archive"], fields["sinkName"], fields["batches"], parts, fields["done"])
        except (KeyError, TypeError, ValueError) as error:
            raise RestoreError(f"{path} cannot be used: {error}") from error


def restore_mapped(
    spark: SparkSession | None,
    request: Request,
    directory: Path,
    *,
    append: bool = False,
    dry_run: bool = False,
) -> Mapped:
    """Produce topics of an archive, and write a map of offsets into `directory`. A dry run needs no session.

    :param append: Whether the topics may have records.
    :raises RestoreError: Where topics are not as they must be, or what came out is not what was archived.
    :raises PathError: When Spark could not read what is in a directory.
    """
    target = open_archive(request.directory)
    pattern_of(directory)  # what Spark cannot read is refused before anything is produced
    with closing(connected(request.connection())) as client:
        wanted = archived_partitions(target, request.topics)
        targets = find_targets(client, request, wanted)
        check_retention(client, request, target, targets, time.time_ns() // 1_000_000)
        before = _State.read(directory / STATE)
        state = _begin(request, wanted, targets, append=append) if before is None else before
        _check(state, request, wanted, targets)
        if spark is None or dry_run:
            return Mapped(directory, state.parts, targets.missing, dry_run=True)
        create_missing(client, request, targets)
        if before is None:
            directory.mkdir(parents=True, exist_ok=True)
            _note(directory, state)
        if not (directory / RUNS).exists():
            with progress(spark, "restoring"):
                _produce(spark, target, request, state, directory)
            with progress(spark, "verifying"):
                _write_map(spark, client, target, request, state, directory)
        return Mapped(directory, state.parts, targets.missing)


def _begin(request: Request, wanted: Sequence[ArchivedPart], targets: Targets, *, append: bool) -> _State:
    parts = []
    for each in wanted:
        place = TopicPartition(request.target_of(each.topic), each.partition)
        first, end = targets.bounds_of(place)
        if end > first and not append:
            raise RestoreError(f"partition {place} has records already: they may stay with --append")
        parts.append(MappedPart(*each, place.topic, end))
    batches_count = -(-sum(each.records_count for each in wanted) // _BATCH_RECORDS)
    return _State(str(request.directory.resolve()), f"restore-{uuid4().hex}", batches_count, tuple(parts))


def _check(state: _State, request: Request, wanted: Sequence[ArchivedPart], targets: Targets) -> None:
    """See that a run that died is gone on with as it was begun.

    :raises RestoreError: When it is not.
    """
    begun = {(each.topic, each.restored_topic) for each in state.parts}
    asked = {(each.topic, request.target_of(each.topic)) for each in wanted}
    if state.archive != str(request.directory.resolve()) or begun != asked:
        names = ", ".join(f"{topic} as {name}" for topic, name in sorted(begun))
        message = f"the map is of {state.archive} with {names}: go on with that, or use another directory"
        raise RestoreError(message)
    for each in state.parts:
        place = TopicPartition(each.restored_topic, each.partition)
        if targets.bounds_of(place)[1] < each.begin:
            raise RestoreError(f"topic '{each.restored_topic}' was made anew since its restoring began")


def _note(directory: Path, state: _State) -> None:
    write_atomically(directory / STATE, state.to_json().encode())


def _produce(
    spark: SparkSession, target: ArchiveTarget, request: Request, state: _State, directory: Path
) -> None:
    """Write the batches that are not done; the sink knows the one that may be, and no older ones."""
    rows = _archived(spark, target, state)
    number = f.expr(f"cast(floor((offset - start) * {state.batches_count}D / (end - start)) as int)")
    options = {name: value for name, value in request.options.items() if name.lower().startswith("kafka.")}
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
        _note(directory, replace(state, done_count=batch + 1))


def _archived(spark: SparkSession, target: ArchiveTarget, state: _State) -> DataFrame:
    """The records that are restored, with what is said of their partitions."""
    ddl = (
        "topic string, partition int, start bigint, end bigint, records_count bigint, restored_topic string, "
        "begin bigint"
    )
    parts = spark.createDataFrame([tuple(each) for each in state.parts], ddl)
    rows = target.records(spark).join(f.broadcast(parts), ["topic", "partition"])
    return rows.where("offset >= start and offset < end")


def _write_map(
    spark: SparkSession,
    client: BlockingClient,
    target: ArchiveTarget,
    request: Request,
    state: _State,
    directory: Path,
) -> None:
    """Hold what was produced against the archive, record by record, and keep which is which.

    :raises RestoreError: Where they differ.
    """
    staged = directory / f"_staging-{uuid4().hex}"
    for leftover in directory.glob("_staging-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    archived = _archived(spark, target, state).selectExpr(
        "restored_topic", "partition", "topic", "offset", f"{_HASHED} hash"
    )
    there = _there(spark, client, request, state).selectExpr(
        "topic restored_topic", "partition", "offset restored_offset", f"{_HASHED} restored_hash"
    )
    place = ["restored_topic", "partition"]
    left = archived.withColumn("rank", f.row_number().over(Window.partitionBy(*place).orderBy("offset")))
    right = there.withColumn(
        "rank", f.row_number().over(Window.partitionBy(*place).orderBy("restored_offset"))
    )
    both = left.join(right, [*place, "rank"], "left").withColumn("same", f.expr("hash <=> restored_hash"))
    ordered = Window.partitionBy(*place).orderBy("rank")
    follows = f.expr("offset - 1 <=> before and restored_offset - 1 <=> restored_before")
    runs = (
        both.withColumn("before", f.lag("offset").over(ordered))
        .withColumn("restored_before", f.lag("restored_offset").over(ordered))
        .withColumn("run", f.sum(f.when(follows, 0).otherwise(1)).over(ordered))
        .groupBy("topic", *place, "run")
        .agg(
            f.min("offset").alias("offset"),
            f.min("restored_offset").alias("restored_offset"),
            f.count("*").alias("records_count"),
            f.min("same").alias("same"),
        )
    )
    runs.write.parquet(uri(staged))
    written = spark.read.schema(runs.schema).parquet(pattern_of(staged))
    bad = written.where("not same").orderBy("topic", "partition", "offset").first()
    found = written.agg(f.sum("records_count")).first()
    records_count = sum(each.records_count for each in state.parts)
    if bad is not None or found is None or (found[0] or 0) != records_count:
        shutil.rmtree(staged, ignore_errors=True)
        where = "" if bad is None else f" from offset {bad['offset']} of {bad['topic']}-{bad['partition']} on"
        message = (
            f"what is in the topics is not what is archived{where}: nobody else may write to them meanwhile, and their "
            "message.timestamp.type has to be CreateTime"
        )
        raise RestoreError(message)
    staged.rename(directory / RUNS)


def _there(spark: SparkSession, client: BlockingClient, request: Request, state: _State) -> DataFrame:
    """The committed records behind where the partitions began."""
    begins = {TopicPartition(each.restored_topic, each.partition): each.begin for each in state.parts}
    ends = client.admin.list_offsets(dict.fromkeys(begins, LATEST), Isolation.READ_COMMITTED)
    ranges: list[tuple[str, int, int, int]] = []
    for place, end in ends.items():
        if not isinstance(end, ListedOffset):
            raise end
        if end.offset > begins[place]:
            ranges.append((*place, begins[place], end.offset))
    if not ranges:
        return spark.createDataFrame([], RECORDS_DDL)
    options: Mapping[str, str] = {**request.options, "kafka.isolation.level": "read_committed"}
    return spark.read.format("barnabas").options(**reading(options, ranges)).load()
