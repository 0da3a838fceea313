"""Measures usage: bytes and records by partition and day, hot keys, hot partitions, and replica moves.

Bytes and days come from batch headers, without decoding: a batch counts for the day of its latest record. Hot keys
need every record's key, and are skipped if none are requested.
"""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from barnabas.base.ids import TopicPartition
from barnabas.client.core.metadata import TopicInfo
from barnabas.reading.connection import ConnectionOptions, connected
from barnabas.reading.offset_range import PlannedRange
from barnabas.reading.opening import connected_logs
from barnabas.reading.options import ReadOptions
from barnabas.reading.planning import plan_ranges
from barnabas.reading.scan import read_ranged_records, scan_batches
from barnabas.reading.text_options import batch_read_options
from barnabas.reports.progress import Progress, no_progress
from barnabas.reports.usage.balancing import Balance, Home, balanced, loads_of
from barnabas.reports.usage.counting import DayCounts, next_offset, records_by_partition
from barnabas.reports.usage.key_counts import KeyCounts, count_only
from barnabas.reports.usage.statistics import (
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
from barnabas.wire.errors import KafkaError
from barnabas.wire.records.batches_numba import read_batches


class TopKey(NamedTuple):
    """One of the most frequent keys of a partition."""

    tp: TopicPartition
    key: bytes
    records_count: int


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
    options: Mapping[str, str],
    *,
    keys_count: int = 5,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> Usage:
    """Measure the topics that options of the Spark source select.

    :param keys_count: Number of hot keys to find in each partition; with 0 no record is decoded.
    :raises OptionError: An option is not valid.
    """
    parsed = batch_read_options(options)
    with closing(connected_logs(parsed)) as logs:
        topic_ids = logs.partitions(parsed.selection)
        planned = [
            PlannedRange(offset_range, topic_ids[offset_range.tp], math.inf)
            for offset_range in plan_ranges(logs, sorted(topic_ids), parsed)
        ]
    ranges = tuple(LogRange(*tp, low, high) for (tp, low, high), *_ in planned)
    if dry_run or not ranges:
        return Usage(ranges, dry_run=dry_run)
    measured = [planned_range for planned_range in planned if planned_range.range.offsets_count > 0]
    with progress(sum(planned_range.range.offsets_count for planned_range in measured)) as advance:
        days, keys = _counted(measured, parsed, keys_count, advance)
    balance = _balance(parsed.connection, partition_usage(topic_ids, days))
    return Usage(ranges, days, keys, balance)


def _counted(
    ranges: Sequence[PlannedRange], options: ReadOptions, keys_count: int, advance: Callable[[int], None]
) -> tuple[tuple[PartDay, ...], tuple[HotKey, ...]]:
    """Count the batches by day, and the keys of one partition after the other."""
    days = DayCounts()
    top_keys: list[TopKey] = []
    again: dict[TopicPartition, pa.Array] = {}
    for tp, raws in groupby(scan_batches(ranges, options), key=lambda item: item[0].tp):
        keys = KeyCounts()
        for offset_range, raw in raws:
            batches = read_batches(raw.batches)
            days.add(offset_range, batches)
            if keys_count:
                for rows in read_ranged_records(offset_range, raw, options, ("key",)):
                    keys.add(rows.column(0))
            advance(min(next_offset(batches), offset_range.high) - max(raw.low, offset_range.low))
        if keys.missed_max:
            again[tp] = keys.candidates(keys_count)
        elif keys_count:
            top_keys += [TopKey(tp, *top) for top in keys.top(keys_count)]
    top_keys += _counted_again(ranges, options, keys_count, again)
    rows = days.rows()
    return rows, _hot_keys(top_keys, records_by_partition(rows))


def _counted_again(
    ranges: Sequence[PlannedRange],
    options: ReadOptions,
    keys_count: int,
    candidates: Mapping[TopicPartition, pa.Array],
) -> Iterator[TopKey]:
    """Count the candidates of partitions whose keys did not all fit into memory."""
    chosen = [planned_range for planned_range in ranges if planned_range.range.tp in candidates]
    for tp, raws in groupby(scan_batches(chosen, options) if chosen else (), key=lambda item: item[0].tp):
        keys = KeyCounts(kept_bytes_max=sys.maxsize)  # the candidates are few
        for offset_range, raw in raws:
            for rows in read_ranged_records(offset_range, raw, options, ("key",)):
                keys.add(count_only(rows.column(0), candidates[tp]))
        yield from (TopKey(tp, *top) for top in keys.top(keys_count))


def _hot_keys(top_keys: Iterable[TopKey], counts: Mapping[TopicPartition, int]) -> tuple[HotKey, ...]:
    keys = [
        HotKey(*tp, format_key(key), count, count / max(counts.get(tp, 0), count))
        for tp, key, count in top_keys
    ]
    return tuple(sorted(keys, key=lambda key: (key.topic, key.partition, -key.records_count, key.key)))


def _balance(connection: ConnectionOptions, partitions: Sequence[PartitionUsage]) -> Balance | None:
    """Choose replica moves; None if there is only one home, or DescribeLogDirs is not allowed."""
    if not connection.bootstrap:
        return None
    with closing(connected(connection)) as client:
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
