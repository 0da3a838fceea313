from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.ids import (
    METADATA_TOPIC_UUID,
    ZERO_UUID,
    TopicPartition,
    random_id,
    uuid_from_text,
    uuid_to_text,
)


@given(st.binary(min_size=16, max_size=16))
def test_an_id_is_printed_in_22_characters_that_read_back_as_the_same_id(uuid: bytes) -> None:
    text = uuid_to_text(uuid)
    assert len(text) == 22
    assert uuid_from_text(text) == uuid


@pytest.mark.parametrize(
    ("uuid", "text"),
    [
        (ZERO_UUID, "AAAAAAAAAAAAAAAAAAAAAA"),
        (METADATA_TOPIC_UUID, "AAAAAAAAAAAAAAAAAAAAAQ"),
        (b"\xfb\xff" + bytes(14), "-_8AAAAAAAAAAAAAAAAAAA"),
    ],
)
def test_ids_print_as_in_apache_kafka(uuid: bytes, text: str) -> None:
    assert uuid_to_text(uuid) == text


def test_a_random_id_does_not_begin_with_a_dash() -> None:
    rng = Random(1)
    ids = {random_id(rng) for _ in range(1_000)}
    assert len(ids) == 1_000
    assert not any(each.startswith("-") for each in ids)


@pytest.mark.parametrize(
    "text",
    ["", "short", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAA+AAAAAAAAAAA", "ä" * 22],
)
def test_text_that_is_not_an_id_is_an_error_with_the_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid Kafka id .* expected 22 characters") as raised:
        uuid_from_text(text)
    assert f"'{text}'" in str(raised.value)


def test_only_sixteen_bytes_are_an_id() -> None:
    with pytest.raises(AssertionError):
        uuid_to_text(bytes(15))


def test_a_topic_partition_prints_as_its_directory_is_named() -> None:
    assert str(TopicPartition("orders.eu", 12)) == "orders.eu-12"
    assert f"{TopicPartition('a', 0)}" == "a-0"
