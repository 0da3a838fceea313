"""Format of a stream's offset, and reading of older checkpoints."""

import json

import pytest

from barnabas.base.ids import ZERO_UUID, TopicPartition, uuid_to_text
from pyspark_barnabas.stream_offsets import BY_PARTITION, Split, StreamOffset, positions_only

A, B = TopicPartition("orders", 0), TopicPartition("clicks", 10)
ORDERS, CLICKS = bytes(15) + b"\x01", bytes(15) + b"\x02"
OFFSET = StreamOffset({A: 3, B: 5}, {"orders": ORDERS, "clicks": CLICKS})


def test_ids_are_beside_the_offsets_in_the_connectors_format() -> None:
    written = json.loads(json.dumps(OFFSET.to_json()))
    assert positions_only(written) == {"clicks": {"10": 5}, "orders": {"0": 3}}
    assert written[f"#topicId:clicks:{uuid_to_text(CLICKS)}"] == {}
    assert written[f"#topicId:orders:{uuid_to_text(ORDERS)}"] == {}
    assert StreamOffset.from_json(written) == OFFSET


def test_equal_offsets_have_equal_text() -> None:
    turned = StreamOffset({B: 5, A: 3}, {"clicks": CLICKS, "orders": ORDERS})
    assert json.dumps(turned.to_json()) == json.dumps(OFFSET.to_json())


def test_the_connectors_offsets_have_no_ids() -> None:
    offset = StreamOffset.from_json({"orders": {"0": 3}})
    assert offset == StreamOffset({A: 3})
    assert offset.to_json() == {"orders": {"0": 3}}


@pytest.mark.parametrize("split", [BY_PARTITION, (((A, 2),), ((A, 3), (B, 5))), (((A, 1), (B, 5), (A, 3)),)])
def test_tasks_are_beside_the_offsets_as_topics_without_partitions(split: Split) -> None:
    written = json.loads(json.dumps(StreamOffset({A: 3, B: 5}, split=split).to_json()))
    assert positions_only(written) == {"clicks": {"10": 5}, "orders": {"0": 3}}
    assert all(written[key] == {} for key in written.keys() - positions_only(written).keys())
    assert StreamOffset.from_json(written).split == split


def test_a_task_is_written_with_the_ends_of_its_ranges_by_topic() -> None:
    written = StreamOffset({A: 3, B: 5}, split=(((A, 2),), ((A, 3), (B, 5)))).to_json()
    assert written.keys() - {"orders", "clicks"} == {
        "#task:0:orders:0=2",
        "#task:1:orders:0=3",
        "#task:1:clicks:10=5",
    }


def test_the_start_of_a_query_is_beside_the_offsets_by_topic() -> None:
    offset = StreamOffset({A: 3, B: 5}, begin={B: 4, A: 3})
    written = json.loads(json.dumps(offset.to_json()))
    assert written.keys() - {"orders", "clicks"} == {"#from:clicks:10=4", "#from:orders:0=3"}
    assert StreamOffset.from_json(written) == offset
    assert offset.is_at(StreamOffset({A: 3, B: 5}))


def test_a_query_may_start_without_partitions() -> None:
    offset = StreamOffset({A: 3}, begin={})
    assert offset.to_json() == {"orders": {"0": 3}, "#from": {}}
    assert StreamOffset.from_json(offset.to_json()) == offset


def test_a_zero_id_is_unknown() -> None:
    assert StreamOffset.of({A: 3, B: 5}, {A: ORDERS, B: ZERO_UUID}).topic_ids == {"orders": ORDERS}


def test_topics_are_recreated_if_both_ids_are_known_and_differ() -> None:
    assert OFFSET.recreated({"orders": ORDERS, "clicks": ORDERS}) == {"clicks"}
    assert OFFSET.recreated({}) == StreamOffset({A: 3}).recreated({"orders": CLICKS}) == set()
    assert OFFSET.without({"clicks"}) == StreamOffset({A: 3}, {"orders": ORDERS})


def test_an_invalid_id_is_reported() -> None:
    with pytest.raises(ValueError, match="invalid Kafka id 'nonsense'"):
        StreamOffset.from_json({"orders": {"0": 3}, "#topicId:orders:nonsense": {}})
