"""Values of options, in the notation of Spark and its Kafka connector."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.reading.option_values import (
    OptionError,
    duration_ms,
    flag,
    flat,
    nested,
    number,
    numbers_by_partition,
    partitions,
    size_bytes,
)

TP = TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("text", "expected"), [("1048576", 1 << 20), ("64k", 1 << 16), ("128m", 1 << 27), ("1GB", 1 << 30)]
)
def test_sizes_have_units(text: str, expected: int) -> None:
    assert size_bytes("taskSize", text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("250", 250), ("500ms", 500), ("30s", 30_000), ("15m", 900_000), ("2h", 7_200_000), ("1 d", 86_400_000)],
)
def test_durations_have_units(text: str, expected: int) -> None:
    assert duration_ms("maxTriggerDelay", text) == expected


@pytest.mark.parametrize("text", ["TRUE", "true", " True "])
def test_flags_are_case_insensitive(text: str) -> None:
    assert flag("includeHeaders", text)
    assert not flag("includeHeaders", "false")


def test_partitions_are_listed_by_topic() -> None:
    assert partitions("assign", '{"orders": [0, 2], "clicks": [1]}') == {
        TP,
        TopicPartition("orders", 2),
        TopicPartition("clicks", 1),
    }


def test_offsets_are_by_topic_and_partition() -> None:
    found = numbers_by_partition("startingOffsets", '{"orders": {"0": 23, "1": -2}}', minimum=-2)
    assert found == {TP: 23, TopicPartition("orders", 1): -2}


def test_offsets_are_written_in_the_order_of_topics_and_partitions() -> None:
    offsets = {TopicPartition("b", 10): 1, TopicPartition("b", 9): 2, TopicPartition("a", 0): 3}
    assert list(nested(offsets).items()) == [("a", {"0": 3}), ("b", {"9": 2, "10": 1})]
    assert list(nested(offsets)["b"]) == ["9", "10"]
    assert flat(nested(offsets)) == offsets


def test_an_error_has_the_option_its_value_and_valid_values() -> None:
    with pytest.raises(OptionError, match=r"option 'minPartitions' is '0': .* at least 1"):
        number("minPartitions", "0", minimum=1)


@pytest.mark.parametrize("text", ["128 miles", "", "0", "-1", "1.5g"])
def test_an_invalid_size_is_rejected(text: str) -> None:
    with pytest.raises(OptionError, match=r"taskSize.*128m"):
        size_bytes("taskSize", text)


@pytest.mark.parametrize("text", ["soon", "", "5 fortnights", "-1s"])
def test_an_invalid_duration_is_rejected(text: str) -> None:
    with pytest.raises(OptionError, match=r"maxTriggerDelay.*15m"):
        duration_ms("maxTriggerDelay", text)


@pytest.mark.parametrize("text", ["yes", "", "1"])
def test_an_invalid_flag_is_rejected(text: str) -> None:
    with pytest.raises(OptionError, match="true or false"):
        flag("failOnDataLoss", text)


@pytest.mark.parametrize(
    "text", ["", "[]", "orders", '{"orders": 0}', '{"orders": [-1]}', '{"orders": [true]}', "{}", "{"]
)
def test_invalid_partitions_are_rejected(text: str) -> None:
    with pytest.raises(OptionError, match="assign"):
        partitions("assign", text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        '{"orders": [1]}',
        '{"orders": {"zero": 1}}',
        '{"orders": {"0": -3}}',
        '{"orders": {"0": "1"}}',
    ],
)
def test_invalid_offsets_are_rejected(text: str) -> None:
    with pytest.raises(OptionError, match="startingOffsets"):
        numbers_by_partition("startingOffsets", text, minimum=-2)
