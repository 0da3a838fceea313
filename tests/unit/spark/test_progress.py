"""Offsets of a query's progress that are committed, and requirements of the listener."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.reading.option_values import OptionError
from barnabas.reading.options import Assign, Subscribe, SubscribePattern
from pyspark_barnabas.progress import GroupProgress, selected_offsets

TP = TopicPartition("orders", 0)
TEXT = '{"orders": {"0": 7, "1": 8}, "clicks": {"0": 9}, "#topicId:orders:AAAAAAAAAAAAAAAAAAAAAg": {}}'


def test_offsets_of_selected_partitions_are_committed() -> None:
    orders = {TP: 7, TopicPartition("orders", 1): 8}
    assert selected_offsets(TEXT, Subscribe(("orders",))) == orders
    assert selected_offsets(TEXT, SubscribePattern("ord.*")) == orders
    assert selected_offsets(TEXT, SubscribePattern("ord")) == {}
    assert selected_offsets(TEXT, Assign(frozenset({TP}))) == {TP: 7}


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "null",
        "17",
        "[1]",
        '{"orders": 5}',
        '{"orders": {"0": -1}}',
        '{"orders": {"a": 1}}',
        "offset 5",
    ],
)
def test_progress_of_other_sources_is_ignored(text: str | None) -> None:
    assert selected_offsets(text, Subscribe(("orders",))) == {}


def test_a_group_is_required() -> None:
    with pytest.raises(OptionError, match=r"kafka\.group\.id"):
        GroupProgress({"kafka.bootstrap.servers": "a:1", "subscribe": "orders"})
