"""Topic statistics from counts by partition and day."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.reports.usage.statistics import (
    HotKey,
    PartDay,
    advice,
    format_key,
    growth,
    partition_usage,
    recent_dates,
    topic_usage,
)

PARTITIONS = [TopicPartition("orders", index) for index in range(4)]


def day(partition: int, date: str, size_bytes: int, topic: str = "orders") -> PartDay:
    return PartDay(topic, partition, date, size_bytes, size_bytes // 10)


def test_recent_means_the_week_up_to_the_newest_day() -> None:
    assert recent_dates([]) == frozenset()
    assert recent_dates([day(0, "", 10)]) == frozenset()
    found = recent_dates([day(0, "2026-03-02", 10), day(0, "2025-01-01", 10), day(0, "", 10)])
    assert min(found) == "2026-02-24"
    assert max(found) == "2026-03-02"
    assert len(found) == 7


def test_a_hot_partition_recently_received_much_more_than_its_neighbours() -> None:
    days = [day(0, "2026-01-01", 100_000), day(1, "2026-03-01", 900), day(2, "2026-03-02", 100)]
    found = partition_usage(PARTITIONS, days)
    assert [each.size_bytes for each in found] == [100_000, 900, 100, 0]
    assert [each.recent_bytes for each in found] == [0, 900, 100, 0]
    assert [each.is_hot for each in found] == [False, True, False, False]
    assert found[1].heat == pytest.approx(3.6)


def test_topics_are_ordered_by_size_with_their_skew() -> None:
    days = [day(0, "2026-03-01", 300), day(1, "2026-03-01", 100), day(0, "2026-03-01", 5_000, "big")]
    found = topic_usage(partition_usage([*PARTITIONS, TopicPartition("empty", 0)], days))
    assert [(each.topic, each.partitions_count, each.size_bytes, each.records_count) for each in found] == [
        ("big", 1, 5_000, 500),
        ("orders", 4, 400, 40),
        ("empty", 1, 0, 0),
    ]
    assert [each.skew for each in found] == [1.0, 3.0, 1.0]
    assert found[1].recent_bytes_per_day == pytest.approx(400 / 7)
    assert [each.hot_partitions for each in found] == [(), (0,), ()]


def test_growth_sums_partitions_by_topic_and_day() -> None:
    days = [day(0, "2026-03-01", 10), day(1, "2026-03-01", 20), day(0, "2026-03-02", 40)]
    assert growth(days) == [
        PartDay("orders", -1, "2026-03-01", 30, 3),
        PartDay("orders", -1, "2026-03-02", 40, 4),
    ]


@pytest.mark.parametrize(
    ("key", "text"),
    [(b"customer-7", "customer-7"), ("käse".encode(), "käse"), (b"\x00\x07", "0x0007"), (b"\xff", "0xff")],
)
def test_a_key_is_shown_as_text_if_it_is_text(key: bytes, text: str) -> None:
    assert format_key(key) == text


def test_a_hot_key_differs_from_a_partition_with_many_keys() -> None:
    days = [day(0, "2026-03-01", 100), day(1, "2026-03-01", 900)]
    topics = topic_usage(partition_usage(PARTITIONS, days))
    heavy = HotKey("orders", 1, "all", 80, 0.9)
    [one] = advice(topics, [heavy, HotKey("orders", 0, "few", 3, 0.3)])
    assert "'all' has 80% of all records, in partition 1" in one
    [other] = advice(topics, [])
    assert "partitions 1 are hot" in other
    assert advice(topic_usage(partition_usage(PARTITIONS, [])), []) == []
