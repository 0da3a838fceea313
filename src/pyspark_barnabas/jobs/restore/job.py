"""Topics back from an archive, with the offsets that their records had.

No producer can choose offsets. So tasks write segments into the log directory of the broker, one partition each, and
the broker imports them (`barnabas.log.imports`). A partition is empty or whole at any time: what a killed run has left
is done again, what it had finished is recognized by its bounds, and in the end everything that was restored is read
from the topic and compared with the sums of the archive.
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
from barnabas.log.imports.restore_manifest import HANDOVER, Handover
from barnabas.log.startup.checkpoints import read_partition_metadata
from barnabas.wire.records.compression import Compression
from pyspark_barnabas.jobs.archive.job import dated, reading, sums_of
from pyspark_barnabas.jobs.archive.parquet_target import ArchiveTarget, PartSum, open_archive
from pyspark_barnabas.jobs.common.client import check_barnabas, connected
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

_STAGING = f"{HANDOVER}.tmp-"
#: Brokers check what they take in, a gigabyte or so in a second.
_TAKING_TIMEOUT_MS = 3_600_000
_LOOKS_COUNT = 20
_PAUSE_S = 0.5
_WRITTEN = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("path", pa.string())])
_WRITTEN_DDL = "topic string, partition int, path string"


class RestoredPart(NamedTuple):
    """A partition with the offsets [start, end) of its original; `is_there` when it had them before this run."""

    topic: str
    partition: int
    start: int
    end: int
    records_count: int
    is_there: bool

    @property
    def place(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True)
class Restored:
    """What a run did, or would do."""

    directory: Path
    parts: tuple[RestoredPart, ...]
    created: tuple[str, ...]
    dry_run: bool = False


def restore(spark: SparkSession | None, request: Request, *, dry_run: bool = False) -> Restored:
    """Write topics of an archive back. A dry run needs no session.

    :raises RestoreError: Where topics are not as they must be, the broker's disk is not seen here, or what came out
        is not what was archived.
    """
    target = open_archive(request.directory)
    wanted = archived_partitions(target, request.topics)
    with closing(connected(request.connection(), _TAKING_TIMEOUT_MS)) as client:
        check_barnabas(client, "no other takes in records with their offsets; --map does without")
        targets = find_targets(client, request, wanted)
        check_retention(client, request, target, targets, time.time_ns() // 1_000_000)
        parts = tuple(_part(request.target_of(each.topic), each, targets) for each in wanted)
        if spark is None or dry_run:
            return Restored(request.directory, parts, targets.missing, dry_run=True)
        create_missing(client, request, targets, replication_factor=1)
        missing = [each for each in parts if not each.is_there and each.end > 0]
        homes = _homes(client, [each.place for each in missing])
        tasks = _Tasks(
            {place: str(home.directory) for place, home in homes.items()},
            {each.place: Handover(homes[each.place].topic_id, each.start, each.end) for each in missing},
            request.compression,
        )
        if missing:
            with progress(spark, "restoring"):
                written = tasks.run(_rows(spark, target, request, tasks))
            for place, home in homes.items():
                _hand_over(client, place, home, Path(written[place]))
        with progress(spark, "verifying"):
            _verify(spark, request, target, parts)
        return Restored(request.directory, parts, targets.missing)


def _part(name: str, each: ArchivedPart, targets: Targets) -> RestoredPart:
    place = TopicPartition(name, each.partition)
    first, end = targets.bounds_of(place)
    is_there = (first, end) == (each.start, each.end)
    if end > 0 and not is_there:
        message = (
            f"partition {place} has offsets {first} to {end}, and the archive {each.start} to {each.end}: "
            "offsets can be kept in partitions that never had a record"
        )
        raise RestoreError(message)
    return RestoredPart(name, each.partition, each.start, each.end, each.records_count, is_there)


# Writing


class _Home(NamedTuple):
    """Where a partition lies: on which broker, in which of its log directories."""

    node_id: int
    log_dir: str
    directory: Path
    topic_id: bytes


def _homes(client: BlockingClient, places: Sequence[TopicPartition]) -> dict[TopicPartition, _Home]:
    """Where the partitions lie on this machine's disks.

    :raises RestoreError: Where they cannot be seen.
    """
    homes: dict[TopicPartition, _Home] = {}
    for look in range(_LOOKS_COUNT):
        if len(homes) == len(places):
            break
        if look:
            time.sleep(_PAUSE_S)  # Apache Kafka makes replicas after it has answered
        homes = _look(client, places)
    for place in places:
        home = homes.get(place)
        if home is None or not _is_here(home):
            where = "no log directory" if home is None else str(home.directory)
            message = (
                f"partition {place} lies in {where} of its broker, which is not seen here: offsets can be kept where "
                "the log directories of a Barnabas broker can be written to; --map does without"
            )
            raise RestoreError(message)
    return homes


def _look(client: BlockingClient, places: Sequence[TopicPartition]) -> dict[TopicPartition, _Home]:
    topics = client.admin.describe_topics({place.topic for place in places})
    by_leader: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    ids: dict[str, bytes] = {}
    for place in places:
        topic = topics[place.topic]
        if not isinstance(topic, TopicInfo):
            raise topic
        ids[place.topic] = topic.topic_id
        by_leader[topic.partition(place.partition).leader].append(place)
    return {
        place: _Home(leader, described.path, Path(described.path, str(place)), ids[place.topic])
        for leader, led in by_leader.items()
        for described in client.admin.describe_log_dirs(leader, led)
        for place, replica in described.replicas.items()
        if not replica.is_future
    }


def _is_here(home: _Home) -> bool:
    """Whether the directory is the partition's own, and not one of the same name on another machine."""
    return home.directory.is_dir() and read_partition_metadata(home.directory) in (None, home.topic_id)


def _rows(spark: SparkSession, target: ArchiveTarget, request: Request, tasks: "_Tasks") -> DataFrame:
    """The records of the partitions that are wanted, each in the order of its offsets."""
    names = {each.topic for each in archived_partitions(target, request.topics)}
    rows = target.records(spark).where(f.col("topic").isin(sorted(names)))
    if request.name:
        rows = rows.withColumn("topic", f.lit(request.name))
    places = spark.createDataFrame([tuple(place) for place in tasks.wanted], "topic string, partition int")
    rows = rows.join(f.broadcast(places), ["topic", "partition"], "left_semi")
    parts_count = max(1, min(len(tasks.wanted), 4 * spark.sparkContext.defaultParallelism))
    columns = ["topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers"]
    return (
        rows.select(*columns)
        .repartition(parts_count, "topic", "partition")
        .sortWithinPartitions("topic", "partition", "offset")
    )


@dataclass(frozen=True)
class _Tasks:
    """What tasks write, and where."""

    directories: Mapping[TopicPartition, str]
    wanted: Mapping[TopicPartition, Handover]
    compression: Compression

    def run(self, rows: DataFrame) -> dict[TopicPartition, str]:
        """Write all partitions; gives back the directories."""
        for directory in self.directories.values():
            for left in Path(directory).glob(f"{HANDOVER}*"):
                shutil.rmtree(left, ignore_errors=True)
        found = rows.mapInArrow(self.write, _WRITTEN_DDL).collect()
        written = {TopicPartition(each["topic"], each["partition"]): each["path"] for each in found}
        for place in self.wanted.keys() - written.keys():  # those without a record
            with self._writer(place) as writer:
                writer.finish()
            written[place] = str(writer.directory)
        return written

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the partitions whose rows come, one after the other."""
        rest: Iterator[tuple[TopicPartition, pa.RecordBatch]] = (
            each for batch in grouped(batches) for each in parts_of(batch)
        )
        coming = next(rest, None)
        while coming is not None:
            place = coming[0]
            with self._writer(place) as writer:
                while coming is not None and coming[0] == place:
                    for encoded in encode_rows(coming[1], self.compression):
                        writer.write(encoded)
                    coming = next(rest, None)
                writer.finish()
            row = {"topic": place.topic, "partition": place.partition, "path": str(writer.directory)}
            yield pa.RecordBatch.from_pylist([row], _WRITTEN)

    def _writer(self, place: TopicPartition) -> SegmentsWriter:
        directory = Path(self.directories[place], f"{_STAGING}{uuid.uuid4().hex}")
        return SegmentsWriter(directory, self.wanted[place])


def parts_of(batch: pa.RecordBatch) -> Iterator[tuple[TopicPartition, pa.RecordBatch]]:
    """Runs of rows of one partition."""
    places = list(zip(batch.column("topic").to_pylist(), batch.column("partition").to_pylist(), strict=True))
    first = 0
    for end in range(1, len(places) + 1):
        if end == len(places) or places[end] != places[first]:
            yield TopicPartition(*places[first]), batch.slice(first, end - first)
            first = end


def _hand_over(client: BlockingClient, place: TopicPartition, home: _Home, written: Path) -> None:
    """Have the broker take in what was written.

    :raises RestoreError: When it does not.
    """
    handed = written.rename(home.directory / HANDOVER)
    [error] = client.admin.alter_replica_log_dirs(home.node_id, {place: home.log_dir}).values()
    if error is not None:
        raise RestoreError(
            f"the broker does not take in partition {place} ({error.code.name}); its log says why"
        )
    if handed.exists():
        shutil.rmtree(handed, ignore_errors=True)
        message = (
            f"broker {home.node_id} has not looked at what was written for partition {place}: it is no Barnabas; "
            "--map does without"
        )
        raise RestoreError(message)


# Verifying


def _verify(
    spark: SparkSession, request: Request, target: ArchiveTarget, parts: Sequence[RestoredPart]
) -> None:
    """Hold what is in the topics against the archive's sums.

    :raises RestoreError: Where they differ.
    """
    ranges = [each[:4] for each in parts if each.start < each.end]
    there: dict[tuple[str, str, int], tuple[int, int]] = {}
    if ranges:
        rows = spark.read.format("barnabas").options(**reading(request.options, ranges)).load()
        there = {each[:3]: each[3:5] for each in sums_of(dated(rows))}
    wanted = expected_sums(target, request)
    for key in sorted(wanted.keys() | there.keys()):
        if wanted.get(key) != there.get(key):
            topic, date, partition = key
            message = f"{topic}-{partition} of {date} is not the same in the archive and in the topic"
            raise RestoreError(message)


def expected_sums(target: ArchiveTarget, request: Request) -> dict[tuple[str, str, int], tuple[int, int]]:
    """Count and checksum of each topic, day and partition, over all runs."""
    found: defaultdict[tuple[str, str, int], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for run in target.runs():
        for each in target.manifest(run).sums:
            if not request.topics or each.topic in request.topics:
                key = (request.target_of(each.topic), each.date, each.partition)
                found[key] = added(found[key], each)
    return dict(found)


def added(sums: tuple[int, int], part: PartSum) -> tuple[int, int]:
    """Count and checksum with those of a part."""
    return sums[0] + part.records_count, (sums[1] + part.checksum) % (1 << 64)
