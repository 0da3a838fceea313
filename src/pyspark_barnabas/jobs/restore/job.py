"""Restore topics from an archive with the offsets that their records had.

Producers cannot choose offsets, so tasks write segments into the broker's log directory, one partition each, and the
broker imports them (`barnabas.replication.segment_importer`). A partition is empty or complete at any time: after a
killed run, unfinished partitions are restored again and finished ones are recognized by their bounds. Finally all
restored records are read from the topics and compared with the sums of the archive.
"""

import shutil
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking import BlockingClient
from barnabas.client.core.metadata import TopicInfo
from barnabas.log.checkpoints import read_partition_metadata
from barnabas.log.import_manifest import IMPORT_DIRECTORY, ImportManifest
from barnabas.objects.location import Location
from barnabas.reading.connection import connected
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.compression import Compression
from pyspark_barnabas.jobs.archive.archive import Archive
from pyspark_barnabas.jobs.archive.job import dated, reading, sums_of
from pyspark_barnabas.jobs.archive.manifest import PartSum
from pyspark_barnabas.jobs.common.client import check_barnabas
from pyspark_barnabas.jobs.common.session import progress
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
from pyspark_barnabas.jobs.restore.segments import SegmentsWriter, encode_rows
from pyspark_barnabas.sink.columns import grouped

_STAGING = f"{IMPORT_DIRECTORY}.tmp-"
#: Brokers check the segments that they import, at about a gigabyte per second.
_IMPORT_TIMEOUT_MS = 3_600_000
_ATTEMPTS_COUNT = 20
_PAUSE_S = 0.5
_WRITTEN = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("path", pa.string())])
_WRITTEN_DDL = "topic string, partition int, path string"


class RestoredPart(NamedTuple):
    """A partition with the offsets [start, end) of its original; `is_there` if it had them before this run."""

    topic: str
    partition: int
    start: int
    end: int
    records_count: int
    is_there: bool

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True)
class Restored:
    """Result of a run or a dry run."""

    directory: Location
    parts: tuple[RestoredPart, ...]
    created: tuple[str, ...]
    dry_run: bool = False


def restore(spark: SparkSession | None, request: Request, *, dry_run: bool = False) -> Restored:
    """Restore topics of an archive with their offsets. A dry run needs no session.

    :raises RestoreError: A topic does not meet the requirements, the broker's log directory is not accessible here, or
        the restored records differ from the archived ones.
    """
    target = request.archive()
    archived = archived_partitions(target, request.topics)
    with closing(connected(request.connection(), _IMPORT_TIMEOUT_MS)) as client:
        check_barnabas(
            client,
            "only Barnabas brokers can restore records with their offsets; --map works with any broker",
        )
        targets = find_targets(client, request, archived)
        check_retention(client, request, target, targets, time.time_ns() // 1_000_000)
        parts = tuple(_part(request.target_of(part.topic), part, targets) for part in archived)
        if spark is None or dry_run:
            return Restored(request.directory, parts, targets.missing, dry_run=True)
        create_missing(client, request, targets, replication_factor=1)
        missing = [part for part in parts if not part.is_there and part.end > 0]
        homes = _homes(client, [part.tp for part in missing])
        tasks = _Tasks(
            {tp: str(home.directory) for tp, home in homes.items()},
            {part.tp: ImportManifest(homes[part.tp].topic_id, part.start, part.end) for part in missing},
            request.compression,
        )
        if missing:
            with progress(spark, "restoring"):
                written = tasks.run(_rows(spark, target, request, tasks))
            for tp, home in homes.items():
                _import(client, tp, home, Path(written[tp]))
        with progress(spark, "verifying"):
            _verify(spark, request, target, parts)
        return Restored(request.directory, parts, targets.missing)


def _part(name: str, archived: ArchivedPart, targets: Targets) -> RestoredPart:
    tp = TopicPartition(name, archived.partition)
    first, end = targets.bounds_of(tp)
    is_there = (first, end) == (archived.start, archived.end)
    if end > 0 and not is_there:
        message = (
            f"partition {tp} has offsets {first} to {end}, but the archive {archived.start} to {archived.end}: "
            "offsets can be restored only into partitions that never had a record"
        )
        raise RestoreError(message)
    return RestoredPart(
        name, archived.partition, archived.start, archived.end, archived.records_count, is_there
    )


# Writing


class _Home(NamedTuple):
    """Location of a replica: its broker and log directory."""

    node_id: int
    log_dir: str
    directory: Path
    topic_id: bytes


def _homes(client: BlockingClient, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, _Home]:
    """Find the partitions' directories on this machine.

    :raises RestoreError: A directory is not accessible here.
    """
    homes: dict[TopicPartition, _Home] = {}
    for attempt in range(_ATTEMPTS_COUNT):
        if len(homes) == len(partitions):
            break
        if attempt:
            time.sleep(_PAUSE_S)  # Apache Kafka creates replicas after it has responded
        homes = _described_homes(client, partitions)
    for tp in partitions:
        home = homes.get(tp)
        if home is None or not _is_here(home):
            location = "no log directory" if home is None else str(home.directory)
            message = (
                f"partition {tp} is in {location} of its broker, which is not accessible here: restoring offsets needs "
                "write access to the log directories of a Barnabas broker; --map works without"
            )
            raise RestoreError(message)
    return homes


def _described_homes(
    client: BlockingClient, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, _Home]:
    topics = client.admin.describe_topics({tp.topic for tp in partitions})
    by_leader: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    ids: dict[str, bytes] = {}
    for tp in partitions:
        topic = topics[tp.topic]
        if not isinstance(topic, TopicInfo):
            raise topic
        ids[tp.topic] = topic.topic_id
        by_leader[topic.partition(tp.partition).leader].append(tp)
    return {
        tp: _Home(leader, described.path, Path(described.path, str(tp)), ids[tp.topic])
        for leader, led in by_leader.items()
        for described in client.admin.describe_log_dirs(leader, led)
        for tp, replica in described.replicas.items()
        if not replica.is_future
    }


def _is_here(home: _Home) -> bool:
    """Whether the directory belongs to this partition, and is not one of the same name on another machine."""
    return home.directory.is_dir() and read_partition_metadata(home.directory) in (None, home.topic_id)


def _rows(spark: SparkSession, target: Archive, request: Request, tasks: "_Tasks") -> DataFrame:
    """Return the records of the partitions to restore, each in the order of its offsets."""
    names = {part.topic for part in archived_partitions(target, request.topics)}
    rows = target.records(spark, request.topics).where(f.col("topic").isin(sorted(names)))
    if request.name:
        rows = rows.withColumn("topic", f.lit(request.name))
    partitions = spark.createDataFrame([tuple(tp) for tp in tasks.manifests], "topic string, partition int")
    rows = rows.join(f.broadcast(partitions), ["topic", "partition"], "left_semi")
    parts_count = max(1, min(len(tasks.manifests), 4 * spark.sparkContext.defaultParallelism))
    columns = ["topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers"]
    return (
        rows.select(*columns)
        .repartition(parts_count, "topic", "partition")
        .sortWithinPartitions("topic", "partition", "offset")
    )


@dataclass(frozen=True)
class _Tasks:
    """Work of the tasks: what they write, and where."""

    directories: Mapping[TopicPartition, str]
    manifests: Mapping[TopicPartition, ImportManifest]
    compression: Compression

    def run(self, rows: DataFrame) -> dict[TopicPartition, str]:
        """Write all partitions; return the directory of each."""
        for directory in self.directories.values():
            for leftover in Path(directory).glob(f"{IMPORT_DIRECTORY}*"):
                shutil.rmtree(leftover, ignore_errors=True)
        written_rows = rows.mapInArrow(self.write, _WRITTEN_DDL).collect()
        written = {TopicPartition(row["topic"], row["partition"]): row["path"] for row in written_rows}
        for tp in self.manifests.keys() - written.keys():  # partitions without records
            with self._writer(tp) as writer:
                writer.finish()
            written[tp] = str(writer.directory)
        return written

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the partitions whose rows arrive, one after the other."""
        parts: Iterator[tuple[TopicPartition, pa.RecordBatch]] = (
            part for batch in grouped(batches) for part in parts_of(batch)
        )
        part = next(parts, None)
        while part is not None:
            tp = part[0]
            with self._writer(tp) as writer:
                while part is not None and part[0] == tp:
                    for encoded in encode_rows(part[1], self.compression):
                        writer.write(encoded)
                    part = next(parts, None)
                writer.finish()
            row = {"topic": tp.topic, "partition": tp.partition, "path": str(writer.directory)}
            yield pa.RecordBatch.from_pylist([row], _WRITTEN)

    def _writer(self, tp: TopicPartition) -> SegmentsWriter:
        directory = Path(self.directories[tp], f"{_STAGING}{uuid.uuid4().hex}")
        return SegmentsWriter(directory, self.manifests[tp])


def parts_of(batch: pa.RecordBatch) -> Iterator[tuple[TopicPartition, pa.RecordBatch]]:
    """Split a batch into runs of rows of one partition."""
    partitions = list(
        zip(batch.column("topic").to_pylist(), batch.column("partition").to_pylist(), strict=True)
    )
    first = 0
    for end in range(1, len(partitions) + 1):
        if end == len(partitions) or partitions[end] != partitions[first]:
            yield TopicPartition(*partitions[first]), batch.slice(first, end - first)
            first = end


def _import(client: BlockingClient, tp: TopicPartition, home: _Home, written: Path) -> None:
    """Request the broker to import the written segments.

    :raises RestoreError: The broker does not import them.
    """
    restored = written.rename(home.directory / IMPORT_DIRECTORY)
    try:
        [result] = client.admin.import_segments(home.node_id, [tp]).values()
    except KafkaError as error:
        shutil.rmtree(restored, ignore_errors=True)
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        message = (
            f"broker {home.node_id} cannot import segments: it is not a Barnabas broker; "
            "--map works with any broker"
        )
        raise RestoreError(message) from error
    if isinstance(result, KafkaError):
        raise RestoreError(f"the broker rejected the segments of partition {tp}: {result}")


# Verifying


def _verify(spark: SparkSession, request: Request, target: Archive, parts: Sequence[RestoredPart]) -> None:
    """Compare the records in the topics with the archive's sums.

    :raises RestoreError: They differ.
    """
    ranges = [part[:4] for part in parts if part.start < part.end]
    restored: dict[tuple[str, str, int], tuple[int, int]] = {}
    if ranges:
        rows = spark.read.format("barnabas").options(**reading(request.options, ranges)).load()
        restored = {part[:3]: part[3:5] for part in sums_of(dated(rows))}
    expected = expected_sums(target, request)
    for key in sorted(expected.keys() | restored.keys()):
        if expected.get(key) != restored.get(key):
            topic, date, partition = key
            message = f"{topic}-{partition} of {date} differs between the archive and the topic"
            raise RestoreError(message)


def expected_sums(target: Archive, request: Request) -> dict[tuple[str, str, int], tuple[int, int]]:
    """Return count and checksum of each topic, day and partition, over all runs."""
    sums: defaultdict[tuple[str, str, int], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for run in target.runs():
        for part in target.manifest(run).sums:
            if not request.topics or part.topic in request.topics:
                key = (request.target_of(part.topic), part.date, part.partition)
                sums[key] = added(sums[key], part)
    return dict(sums)


def added(sums: tuple[int, int], part: PartSum) -> tuple[int, int]:
    """Add a part's count and checksum to `sums`."""
    return sums[0] + part.records_count, (sums[1] + part.checksum) % (1 << 64)
