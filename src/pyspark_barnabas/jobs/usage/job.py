"""How topics are used: bytes and records by partition and day, heavy keys, hot partitions, and what to move.

Bytes and days come from the headers of batches, without decoding: a batch counts for the day of its latest record.
Heavy keys need every record's key, and are left out where none are asked for.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST, LATEST
from barnabas.client.blocking import BlockingClient
from barnabas.client.core.metadata import TopicInfo
from barnabas.wire.errors import KafkaError
from pyspark_barnabas.jobs.common.session import progress
from pyspark_barnabas.jobs.usage.balancing import Balance, Home, balanced, loads_of
from pyspark_barnabas.jobs.usage.statistics import (
    HeavyKey,
    PartDay,
    PartitionUsage,
    TopicUsage,
    advice,
    growth,
    partition_usage,
    shown_key,
    topic_usage,
)
from pyspark_barnabas.source.options import ConnectionOptions, batch_options
from pyspark_barnabas.source.task_planner import open_logs

_DAY_MS = 86_400_000
_HEADERS = (
    "topic STRING, partition INT, recordsCount INT, sizeBytes INT, maxTimestamp TIMESTAMP, isControl BOOLEAN"
)
_KEYS = "topic STRING, partition INT, key BINARY"


class LogRange(NamedTuple):
    """The offsets of a partition that are looked at: low <= offset < high."""

    topic: str
    partition: int
    low: int
    high: int


@dataclass(frozen=True)
class Usage:
    """What was found; or, after a dry run, what would be looked at."""

    ranges: tuple[LogRange, ...]
    days: tuple[PartDay, ...] = ()
    keys: tuple[HeavyKey, ...] = ()
    balance: Balance | None = None  #: None where there is but one home for all replicas, or nobody to ask
    dry_run: bool = False

    @property
    def partitions(self) -> list[PartitionUsage]:
        """Each partition."""
        places = {TopicPartition(each.topic, each.partition) for each in self.ranges}
        return partition_usage(places, self.days)

    @property
    def topics(self) -> list[TopicUsage]:
        """Each topic, the largest first."""
        return topic_usage(self.partitions)

    @property
    def growth(self) -> list[PartDay]:
        """Each topic by day."""
        return growth(self.days)

    @property
    def advice(self) -> list[str]:
        """What an owner might do."""
        return advice(self.topics, self.keys)

    def save(self, directory: Path) -> None:
        """Write each table as Parquet, and the moves, where there are some, as `reassignment.json`."""
        directory.mkdir(parents=True, exist_ok=True)
        topics = [{**each._asdict(), "hot_partitions": list(each.hot_partitions)} for each in self.topics]
        for name, rows, schema in (
            ("topics", topics, _TOPICS),
            ("partitions", [each._asdict() for each in self.partitions], _PARTITIONS),
            ("days", [each._asdict() for each in self.days], _DAYS),
            ("keys", [each._asdict() for each in self.keys], _KEY_ROWS),
        ):
            pq.write_table(pa.Table.from_pylist(rows, schema), directory / f"{name}.parquet")
        if self.balance is not None and self.balance.moves:
            (directory / "reassignment.json").write_text(self.balance.to_json())

    def to_json(self) -> dict[str, Any]:
        """All of it, for programs."""
        moves = () if self.balance is None else self.balance.moves
        return {
            "dry_run": self.dry_run,
            "ranges": [each._asdict() for each in self.ranges],
            "topics": [each._asdict() for each in self.topics],
            "partitions": [each._asdict() for each in self.partitions],
            "days": [each._asdict() for each in self.days],
            "keys": [each._asdict() for each in self.keys],
            "moves": [
                {
                    **move.place._asdict(),
                    "from": move.source._asdict(),
                    "to": move.target._asdict(),
                    "size_bytes": move.size_bytes,
                }
                for move in moves
            ],
            "advice": self.advice,
        }


_COMMON = [("topic", pa.string()), ("partition", pa.int32())]
_DAYS = pa.schema(
    [*_COMMON, ("date", pa.string()), ("size_bytes", pa.int64()), ("records_count", pa.int64())]
)
_KEY_ROWS = pa.schema(
    [*_COMMON, ("key", pa.string()), ("records_count", pa.int64()), ("share", pa.float64())]
)
_PARTITIONS = pa.schema(
    [
        *_COMMON,
        ("size_bytes", pa.int64()),
        ("records_count", pa.int64()),
        ("recent_bytes", pa.int64()),
        ("heat", pa.float64()),
        ("is_hot", pa.bool_()),
    ]
)
_TOPICS = pa.schema(
    [
        ("topic", pa.string()),
        ("partitions_count", pa.int32()),
        ("size_bytes", pa.int64()),
        ("records_count", pa.int64()),
        ("skew", pa.float64()),
        ("recent_bytes_per_day", pa.float64()),
        ("hot_partitions", pa.list_(pa.int32())),
    ]
)


def usage(
    spark: SparkSession | None, options: Mapping[str, str], *, keys_count: int = 5, dry_run: bool = False
) -> Usage:
    """Measure the topics that the source's own options select.

    A dry run needs no session.

    :param keys_count: How many heavy keys to find of each partition; with 0 no record is decoded.
    :raises OptionError: For an option that cannot be.
    """
    parsed = batch_options(options)
    with closing(open_logs(parsed)) as logs:
        places = sorted(logs.partitions(parsed.selection))
        lows = logs.offsets(dict.fromkeys(places, EARLIEST))
        highs = logs.offsets(dict.fromkeys(places, LATEST))
    ranges = tuple(LogRange(*place, lows[place], highs[place]) for place in places)
    if spark is None or dry_run or not ranges:
        return Usage(ranges, dry_run=dry_run)
    days = _days(spark, options)
    keys: tuple[HeavyKey, ...] = ()
    if keys_count:
        counts: dict[TopicPartition, int] = {}
        for each in days:
            place = TopicPartition(each.topic, each.partition)
            counts[place] = counts.get(place, 0) + each.records_count
        keys = _heavy_keys(spark, options, keys_count, counts)
    balance = _balance(parsed.connection, partition_usage(places, days))
    return Usage(ranges, days, keys, balance)


def _days(spark: SparkSession, options: Mapping[str, str]) -> tuple[PartDay, ...]:
    headers = spark.read.format("barnabas-batches").schema(_HEADERS).options(**options).load()
    day = f"cast(floor(unix_millis(maxTimestamp) / {_DAY_MS}) as int)"
    sums = (
        headers.withColumn("date", f.expr(f"coalesce(cast(date_add(date'1970-01-01', {day}) as string), '')"))
        .groupBy("topic", "partition", "date")
        .agg(f.sum("sizeBytes"), f.expr("sum(if(isControl, 0, recordsCount))"))
    )
    with progress(spark, "measuring"):
        return tuple(sorted(PartDay(*row) for row in map(tuple, sums.collect())))


def _heavy_keys(
    spark: SparkSession, options: Mapping[str, str], keys_count: int, counts: Mapping[TopicPartition, int]
) -> tuple[HeavyKey, ...]:
    records = spark.read.format("barnabas").schema(_KEYS).options(**options).load()
    with progress(spark, "counting keys"):
        rows = [tuple(row) for row in heaviest(records, keys_count).collect()]
    found = [
        HeavyKey(
            topic,
            partition,
            shown_key(bytes(key)),
            count,
            count / max(counts.get(TopicPartition(topic, partition), 0), count),
        )
        for topic, partition, key, count in rows
    ]
    return tuple(sorted(found, key=lambda each: (each.topic, each.partition, -each.records_count, each.key)))


def heaviest(records: DataFrame, keys_count: int) -> DataFrame:
    """The keys with the most records of each partition: topic, partition, key, count."""
    counted = records.where("key is not null").groupBy("topic", "partition", "key").count()
    order = Window.partitionBy("topic", "partition").orderBy(f.desc("count"), f.col("key"))
    return counted.withColumn("rank", f.row_number().over(order)).where(f"rank <= {keys_count}").drop("rank")


def _balance(connection: ConnectionOptions, partitions: Sequence[PartitionUsage]) -> Balance | None:
    """What to move; None where there is no choice, or brokers do not tell what lies where."""
    if not connection.bootstrap:
        return None
    with BlockingClient(
        connection.bootstrap, client_id=connection.client_id, login=connection.login
    ) as client:
        topics = client.admin.describe_topics({each.topic for each in partitions})
        try:
            found = {
                node: client.admin.describe_log_dirs(node) for node in sorted(client.cluster.metadata.nodes)
            }
        except KafkaError:  # it may not
            return None
    homes = [
        Home(node, each.path)
        for node, directories in found.items()
        for each in directories
        if each.error is None and not each.is_cordoned
    ]
    if len(homes) < 2:
        return None
    where = {
        (node, place): Home(node, each.path)
        for node, directories in found.items()
        for each in directories
        for place, replica in each.replicas.items()
        if not replica.is_future
    }
    layout: dict[TopicPartition, list[Home]] = {}
    for topic in topics.values():
        if isinstance(topic, TopicInfo):
            for each in topic.partitions:
                place = TopicPartition(topic.name, each.partition_index)
                if all((node, place) in where for node in each.replicas):
                    layout[place] = [where[node, place] for node in each.replicas]
    sizes = {TopicPartition(each.topic, each.partition): each.size_bytes for each in partitions}
    recent = {TopicPartition(each.topic, each.partition): each.recent_bytes for each in partitions}
    return balanced(layout, loads_of(sizes, recent), sizes, homes)
