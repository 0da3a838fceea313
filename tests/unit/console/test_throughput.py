"""Write throughput from log end offsets."""

from barnabas.base.ids import TopicPartition
from barnabas.console.throughput import written

A, B, C = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("c", 0)


def test_throughput_is_the_difference_of_end_offsets_by_topic() -> None:
    assert written({A: 5, B: 7, C: 1}, {A: 6, B: 10, C: 1}) == {"a": 4}


def test_a_new_partition_is_not_counted_yet() -> None:
    assert written({A: 5}, {A: 6, C: 100}) == {"a": 1}


def test_a_recreated_topic_counts_from_0() -> None:
    assert written({A: 100}, {A: 3}) == {"a": 3}
    assert written({A: 100}, {}) == {}
