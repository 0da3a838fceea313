"""Usage job: bytes and records by partition and day, hot keys, hot partitions, and replica moves.

Bytes and days come from batch headers, without decoding: a batch counts for the day of its latest record. Hot keys
need every record's key, and are skipped if none are requested.
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
from barnabas.reading.connection import ConnectionOptions
from barnabas.reading.opening import open_logs
from barnabas.wire.errors import KafkaError
from pyspark_barnabas.jobs.common.session import progress
from pyspark_barnabas.jobs.usage.balancing import Balance, Home, balanced, loads_of
from pyspark_barnabas.jobs.usage.statistics import (
    HotKey,
    PartDay,
    PartitionUsage,
    TopicUsage,
    advice,
    format_key,
    growth,
    partition_usage,
    topic_usage,
)
from pyspark_barnabas.source.options import batch_options

_DAY_MS = 86_400_000
_HEADERS = (
    "topic STRING, partition INT, recordsCount INT, sizeBytes INT, maxTimestamp TIMESTAMP, isControl BOOLEAN"
)
_KEYS = "topic STRING, partition INT, key BINARY"


class LogRange(NamedTuple):
    """Offsets of a partition that are measured: low <= offset < high."""

    topic: str
    partition: int
    low: int
    high: int


@dataclass(frozen=True)
class Usage:
    """Result of a run; after a dry run only the offsets that would be measured."""

    ranges: tuple[LogRange, ...]
    days: tuple[PartDay, ...] = ()
    keys: tuple[HotKey, ...] = ()
    balance: Balance | None = None  #: None if there is only one log directory, or no broker to query
    dry_run: bool = False

    @property
    def partitions(self) -> list[PartitionUsage]:
        """Usage of each partition."""
        partitions = {TopicPartition(log_range.topic, log_range.partition) for log_range in self.ranges}
        return partition_usage(partitions, self.days)

    @property
    def topics(self) -> list[TopicUsage]:
        """Usage of each topic, the largest first."""
        return topic_usage(self.partitions)

    @property
    def growth(self) -> list[PartDay]:
        """Usage of each topic by day."""
        return growth(self.days)

    @property
    def advice(self) -> list[str]:
        """Recommendations for the owner of the topics."""
        return advice(self.topics, self.keys)

    def save(self, directory: Path) -> None:
        """Write each table as Parquet, and the moves, if any, as `reassignment.json`."""
        directory.mkdir(parents=True, exist_ok=True)
        topics = [{**topic._asdict(), "hot_partitions": list(topic.hot_partitions)} for topic in self.topics]
        for name, rows, schema in (
            ("topics", topics, _TOPICS),
            ("partitions", [row._asdict() for row in self.partitions], _PARTITIONS),
            ("days", [row._asdict() for row in self.days], _DAYS),
            ("keys", [row._asdict() for row in self.keys], _KEY_ROWS),
        ):
            pq.write_table(pa.Table.from_pylist(rows, schema), directory / f"{name}.parquet")
        if self.balance is not None and self.balance.moves:
            (directory / "reassignment.json").write_text(self.balance.to_json())

    def to_json(self) -> dict[str, Any]:
        """Return the whole result as JSON fields."""
        moves = () if self.balance is None else self.balance.moves
        return {
            "dry_run": self.dry_run,
            "ranges": [row._asdict() for row in self.ranges],
            "topics": [row._asdict() for row in self.topics],
            "partitions": [row._asdict() for row in self.partitions],
            "days": [row._asdict() for row in self.days],
            "keys": [row._asdict() for row in self.keys],
            "moves": [
                {
                    **move.tp._asdict(),
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
    """Measure the topics that the source's options select. A dry run needs no session.

    :param keys_count: Number of hot keys to find in each partition; with 0 no record is decoded.
    :raises OptionError: An option is not valid.
    """
    parsed = batch_options(options)
    with closing(open_logs(parsed)) as logs:
        partitions = sorted(logs.partitions(parsed.selection))
        lows = logs.offsets(dict.fromkeys(partitions, EARLIEST))
        highs = logs.offsets(dict.fromkeys(partitions, LATEST))
    ranges = tuple(LogRange(*tp, lows[tp], highs[tp]) for tp in partitions)
    if spark is None or dry_run or not ranges:
        return Usage(ranges, dry_run=dry_run)
    days = _days(spark, options)
    keys: tuple[HotKey, ...] = ()
    if keys_count:
        counts: dict[TopicPartition, int] = {}
        for day in days:
            tp = TopicPartition(day.topic, day.partition)
            counts[tp] = counts.get(tp, 0) + day.records_count
        keys = _hot_keys(spark, options, keys_count, counts)
    balance = _balance(parsed.connection, partition_usage(partitions, days))
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


def _hot_keys(
    spark: SparkSession, options: Mapping[str, str], keys_count: int, counts: Mapping[TopicPartition, int]
) -> tuple[HotKey, ...]:
    records = spark.read.format("barnabas").schema(_KEYS).options(**options).load()
    with progress(spark, "counting keys"):
        rows = [tuple(row) for row in hot_keys(records, keys_count).collect()]
    keys = [
        HotKey(
            topic,
            partition,
            format_key(bytes(key)),
            count,
            count / max(counts.get(TopicPartition(topic, partition), 0), count),
        )
        for topic, partition, key, count in rows
    ]
    return tuple(sorted(keys, key=lambda key: (key.topic, key.partition, -key.records_count, key.key)))


def hot_keys(records: DataFrame, keys_count: int) -> DataFrame:
    """Return the keys with the most records in each partition: topic, partition, key, count."""
    counted = records.where("key is not null").groupBy("topic", "partition", "key").count()
    order = Window.partitionBy("topic", "partition").orderBy(f.desc("count"), f.col("key"))
    return counted.withColumn("rank", f.row_number().over(order)).where(f"rank <= {keys_count}").drop("rank")


def _balance(connection: ConnectionOptions, partitions: Sequence[PartitionUsage]) -> Balance | None:
    """Choose replica moves; None if there is only one home, or DescribeLogDirs is not allowed."""
    if not connection.bootstrap:
        return None
    with BlockingClient(
        connection.bootstrap, client_id=connection.client_id, login=connection.login, tls=connection.tls
    ) as client:
        topics = client.admin.describe_topics({partition.topic for partition in partitions})
        try:
            log_dirs = {
                node: client.admin.describe_log_dirs(node) for node in sorted(client.cluster.metadata.nodes)
            }
        except KafkaError:  # not authorized
            return None
    homes = [
        Home(node, log_dir.path)
        for node, directories in log_dirs.items()
        for log_dir in directories
        if log_dir.error is None and not log_dir.is_cordoned
    ]
    if len(homes) < 2:
        return None
    home_of = {
        (node, tp): Home(node, log_dir.path)
        for node, directories in log_dirs.items()
        for log_dir in directories
        for tp, replica in log_dir.replicas.items()
        if not replica.is_future
    }
    layout: dict[TopicPartition, list[Home]] = {}
    for topic in topics.values():
        if isinstance(topic, TopicInfo):
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.partition_index)
                if all((node, tp) in home_of for node in partition.replicas):
                    layout[tp] = [home_of[node, tp] for node in partition.replicas]
    sizes = {TopicPartition(usage.topic, usage.partition): usage.size_bytes for usage in partitions}
    recent = {TopicPartition(usage.topic, usage.partition): usage.recent_bytes for usage in partitions}
    return balanced(layout, loads_of(sizes, recent), sizes, homes)
