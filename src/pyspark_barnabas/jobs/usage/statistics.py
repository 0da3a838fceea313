"""What counts by partition and day say of topics: sizes, skew, hot partitions, growth. No IO."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from barnabas.base.ids import TopicPartition

#: A partition is hot that was lately written so many times as much as the mean of its topic's partitions.
HOT_FACTOR = 2.0
#: How many days, up to the newest that there is, are "lately".
RECENT_DAYS = 7
#: A key of more than this share of its topic's records is worth a word.
HEAVY_SHARE = 0.1


class PartDay(NamedTuple):
    """What a partition keeps of one day (UTC); of records without a time the date is empty."""

    topic: str
    partition: int
    date: str
    size_bytes: int
    records_count: int


class HeavyKey(NamedTuple):
    """One of the keys that have the most records of a partition; `share` is of that partition's records."""

    topic: str
    partition: int
    key: str
    records_count: int
    share: float


class PartitionUsage(NamedTuple):
    """A partition; `heat` is its recent bytes divided by the mean of the topic's partitions, 0 when none are new."""

    topic: str
    partition: int
    size_bytes: int
    records_count: int
    recent_bytes: int
    heat: float
    is_hot: bool


class TopicUsage(NamedTuple):
    """A topic; `skew` is its largest partition divided by the mean, 1 for perfect balance."""

    topic: str
    partitions_count: int
    size_bytes: int
    records_count: int
    skew: float
    recent_bytes_per_day: float
    hot_partitions: tuple[int, ...]


def recent_dates(days: Iterable[PartDay]) -> frozenset[str]:
    """The dates that are "lately": up to the newest one that anything has."""
    newest = max((each.date for each in days), default="")
    if not newest:
        return frozenset()
    last = date.fromisoformat(newest)
    return frozenset((last - timedelta(days=back)).isoformat() for back in range(RECENT_DAYS))


def partition_usage(places: Collection[TopicPartition], days: Collection[PartDay]) -> list[PartitionUsage]:
    """Each partition, those without records too."""
    lately = recent_dates(days)
    sizes: defaultdict[TopicPartition, int] = defaultdict(int)
    counts: defaultdict[TopicPartition, int] = defaultdict(int)
    recent: defaultdict[TopicPartition, int] = defaultdict(int)
    for each in days:
        place = TopicPartition(each.topic, each.partition)
        sizes[place] += each.size_bytes
        counts[place] += each.records_count
        recent[place] += each.size_bytes if each.date in lately else 0
    by_topic: defaultdict[str, list[TopicPartition]] = defaultdict(list)
    for place in sorted({*places, *sizes}):
        by_topic[place.topic].append(place)
    found = []
    for topic, its in by_topic.items():
        mean = sum(recent[place] for place in its) / len(its)
        for place in its:
            heat = recent[place] / mean if mean else 0.0
            is_hot = heat >= HOT_FACTOR
            found.append(
                PartitionUsage(
                    topic, place.partition, sizes[place], counts[place], recent[place], heat, is_hot
                )
            )
    return found


def topic_usage(partitions: Iterable[PartitionUsage]) -> list[TopicUsage]:
    """Each topic, the largest first."""
    by_topic: defaultdict[str, list[PartitionUsage]] = defaultdict(list)
    for each in partitions:
        by_topic[each.topic].append(each)
    found = []
    for topic, its in by_topic.items():
        total = sum(each.size_bytes for each in its)
        largest = max(each.size_bytes for each in its)
        found.append(
            TopicUsage(
                topic,
                len(its),
                total,
                sum(each.records_count for each in its),
                largest * len(its) / total if total else 1.0,
                sum(each.recent_bytes for each in its) / RECENT_DAYS,
                tuple(each.partition for each in its if each.is_hot),
            )
        )
    return sorted(found, key=lambda each: (-each.size_bytes, each.topic))


def growth(days: Iterable[PartDay]) -> list[PartDay]:
    """Each topic by day; the partition is -1."""
    sums: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for each in days:
        total = sums[each.topic, each.date]
        total[0] += each.size_bytes
        total[1] += each.records_count
    return [PartDay(topic, -1, day, *total) for (topic, day), total in sorted(sums.items())]


def shown_key(key: bytes) -> str:
    """A key as people read it: text where it is text, else 0x and hexadecimal digits."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return f"0x{key.hex()}"
    return text if text.isprintable() else f"0x{key.hex()}"


def advice(topics: Iterable[TopicUsage], keys: Sequence[HeavyKey]) -> list[str]:
    """What an owner might do, in words."""
    said = []
    for topic in topics:
        if topic.records_count == 0:
            continue
        heavy = [
            each
            for each in keys
            if each.topic == topic.topic and each.records_count > HEAVY_SHARE * topic.records_count
        ]
        for each in sorted(heavy, key=lambda key: -key.records_count):
            share = each.records_count / topic.records_count
            text = (
                f"{each.topic}: key {each.key!r} has {share:.0%} of all records, in partition {each.partition}: "
                "more partitions do not spread it, a key with more parts does"
            )
            said.append(text)
        spread = set(topic.hot_partitions) - {each.partition for each in heavy}
        if spread:
            numbers = ", ".join(map(str, sorted(spread)))
            text = (
                f"{topic.topic}: partitions {numbers} are hot and have no heavy key: many keys share them; "
                "more partitions (and `barnabas jobs rekey`) spread them"
            )
            said.append(text)
    return said
