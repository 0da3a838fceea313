"""Statistics of topics from counts by partition and day: sizes, skew, hot partitions, growth. No IO."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from barnabas.base.ids import TopicPartition

#: A partition is hot if its recently written bytes are this many times the mean of its topic's partitions.
HOT_FACTOR = 2.0
#: Number of days that count as recent, up to the newest day with records.
RECENT_DAYS = 7
#: A key with more than this share of its topic's records is reported.
HOT_KEY_SHARE = 0.1


class PartDay(NamedTuple):
    """Records of a partition of one day (UTC); the date is empty for records without a timestamp."""

    topic: str
    partition: int
    date: str
    size_bytes: int
    records_count: int


class HotKey(NamedTuple):
    """One of the keys with the most records in a partition; `share` is of that partition's records."""

    topic: str
    partition: int
    key: str
    records_count: int
    share: float


class PartitionUsage(NamedTuple):
    """Usage of a partition; `heat` is its recent bytes divided by the mean of the topic's partitions, 0 without any."""

    topic: str
    partition: int
    size_bytes: int
    records_count: int
    recent_bytes: int
    heat: float
    is_hot: bool


class TopicUsage(NamedTuple):
    """Usage of a topic; `skew` is its largest partition divided by the mean, 1 for perfect balance."""

    topic: str
    partitions_count: int
    size_bytes: int
    records_count: int
    skew: float
    recent_bytes_per_day: float
    hot_partitions: tuple[int, ...]


def recent_dates(days: Iterable[PartDay]) -> frozenset[str]:
    """Return the dates that count as recent: `RECENT_DAYS` up to the newest one."""
    newest = max((day.date for day in days), default="")
    if not newest:
        return frozenset()
    last = date.fromisoformat(newest)
    return frozenset((last - timedelta(days=back)).isoformat() for back in range(RECENT_DAYS))


def partition_usage(
    partitions: Collection[TopicPartition], days: Collection[PartDay]
) -> list[PartitionUsage]:
    """Return the usage of each partition, including those without records."""
    dates = recent_dates(days)
    sizes: defaultdict[TopicPartition, int] = defaultdict(int)
    counts: defaultdict[TopicPartition, int] = defaultdict(int)
    recent: defaultdict[TopicPartition, int] = defaultdict(int)
    for day in days:
        tp = TopicPartition(day.topic, day.partition)
        sizes[tp] += day.size_bytes
        counts[tp] += day.records_count
        recent[tp] += day.size_bytes if day.date in dates else 0
    by_topic: defaultdict[str, list[TopicPartition]] = defaultdict(list)
    for tp in sorted({*partitions, *sizes}):
        by_topic[tp.topic].append(tp)
    usages = []
    for topic, members in by_topic.items():
        mean = sum(recent[tp] for tp in members) / len(members)
        for tp in members:
            heat = recent[tp] / mean if mean else 0.0
            is_hot = heat >= HOT_FACTOR
            usages.append(
                PartitionUsage(topic, tp.partition, sizes[tp], counts[tp], recent[tp], heat, is_hot)
            )
    return usages


def topic_usage(partitions: Iterable[PartitionUsage]) -> list[TopicUsage]:
    """Return the usage of each topic, the largest first."""
    by_topic: defaultdict[str, list[PartitionUsage]] = defaultdict(list)
    for partition in partitions:
        by_topic[partition.topic].append(partition)
    usages = []
    for topic, members in by_topic.items():
        total = sum(partition.size_bytes for partition in members)
        largest = max(partition.size_bytes for partition in members)
        usages.append(
            TopicUsage(
                topic,
                len(members),
                total,
                sum(partition.records_count for partition in members),
                largest * len(members) / total if total else 1.0,
                sum(partition.recent_bytes for partition in members) / RECENT_DAYS,
                tuple(partition.partition for partition in members if partition.is_hot),
            )
        )
    return sorted(usages, key=lambda usage: (-usage.size_bytes, usage.topic))


def growth(days: Iterable[PartDay]) -> list[PartDay]:
    """Sum up each topic by day; the partition is -1."""
    sums: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for day in days:
        total = sums[day.topic, day.date]
        total[0] += day.size_bytes
        total[1] += day.records_count
    return [PartDay(topic, -1, date_text, *total) for (topic, date_text), total in sorted(sums.items())]


def format_key(key: bytes) -> str:
    """Format a key: as text if it is printable UTF-8, else as 0x and hexadecimal digits."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return f"0x{key.hex()}"
    return text if text.isprintable() else f"0x{key.hex()}"


def advice(topics: Iterable[TopicUsage], keys: Sequence[HotKey]) -> list[str]:
    """Return recommendations for the owner of the topics."""
    lines = []
    for topic in topics:
        if topic.records_count == 0:
            continue
        hot_keys = [
            key
            for key in keys
            if key.topic == topic.topic and key.records_count > HOT_KEY_SHARE * topic.records_count
        ]
        for key in sorted(hot_keys, key=lambda key: -key.records_count):
            share = key.records_count / topic.records_count
            text = (
                f"{key.topic}: key {key.key!r} has {share:.0%} of all records, in partition {key.partition}: "
                "more partitions do not spread it; use a finer key"
            )
            lines.append(text)
        spread = set(topic.hot_partitions) - {key.partition for key in hot_keys}
        if spread:
            numbers = ", ".join(map(str, sorted(spread)))
            text = (
                f"{topic.topic}: partitions {numbers} are hot and have no hot key: many keys share them; "
                "more partitions (and `barnabas jobs rekey`) spread them"
            )
            lines.append(text)
    return lines
