"""Confluent's wire format, and the indexes of Protobuf's messages in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.registry.codecs.errors import MalformedValue
from barnabas.registry.codecs.framing import read_message_indexes, written_message_indexes


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=100), st.binary(max_size=3))
def test_message_indexes_round_trip(indexes: list[int], message: bytes) -> None:
    written = written_message_indexes(indexes)
    assert read_message_indexes(written + message) == (indexes, len(written))


def test_a_single_zero_stands_for_the_first_message() -> None:
    assert written_message_indexes([0]) == b"\0"
    assert read_message_indexes(b"\0abc") == ([0], 1)
    assert read_message_indexes(b"\x02\0abc") == ([0], 2)


@pytest.mark.parametrize(
    "body", [b"", b"\x80", b"\xff\xff\xff\xff\xff\x01", b"\x01\0", b"\x04\2", b"\xca\x01\0"]
)
def test_malformed_message_indexes_are_reported(body: bytes) -> None:
    with pytest.raises(MalformedValue, match="no indexes of a message behind its schema id"):
        read_message_indexes(body)
