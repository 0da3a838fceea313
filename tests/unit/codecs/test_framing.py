"""The frame of schema registries."""

import pytest

from barnabas.codecs.errors import ConversionError
from barnabas.codecs.framing import Frame


def test_without_a_frame_values_are_unchanged() -> None:
    assert Frame().opened(b"\0abc") == b"\0abc"
    assert Frame().around(b"abc") == b"abc"


def test_a_frame_is_a_byte_0_and_a_schema_id() -> None:
    assert Frame(True, 258).around(b"abc") == b"\0\0\0\1\2abc"
    assert Frame(True, 258).opened(b"\0\0\0\1\2abc") == b"abc"
    assert Frame(True).opened(b"\0\0\0\1\2abc") == b"abc", "any schema id, when none is given"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"", "does not begin with a byte 0 and a schema id"),
        (b"\0\0\0\1", "does not begin with a byte 0 and a schema id"),
        (b"\1\0\0\1\2abc", "does not begin with a byte 0 and a schema id"),
        (b"\0\0\0\1\3abc", "its schema id is 259, not 258"),
    ],
)
def test_a_value_without_a_frame_or_of_another_schema_is_a_conversion_error(value: bytes, says: str) -> None:
    with pytest.raises(ConversionError, match=says):
        Frame(True, 258).opened(value)
