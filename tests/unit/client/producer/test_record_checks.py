from typing import Any

import pytest

from barnabas.client.producer.record_checks import check_record


def test_bytes_none_and_whole_timestamps_are_accepted() -> None:
    check_record(None, None, (), None)
    check_record(b"k", memoryview(b"v"), (("h", None), ("h", bytearray(b"1"))), -(2**63) + 1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"key": "k"}, "a key must be bytes or None, not str"),
        ({"value": [b"v"]}, "a value must be bytes or None, not list"),
        ({"headers": [(b"h", b"v")]}, "a header's name must be text, not bytes"),
        ({"headers": [("h", "v")]}, "a header's value must be bytes or None, not str"),
        ({"timestamp_ms": 1.5}, "a timestamp must be a whole number of milliseconds, not float"),
    ],
)
def test_other_types_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        check_record(**{"key": None, "value": None, "headers": (), "timestamp_ms": None} | changed)


def test_values_that_a_record_cannot_carry_are_refused() -> None:
    with pytest.raises(ValueError, match="a timestamp has at most 64 bits"):
        check_record(None, None, (), 2**63)
    with pytest.raises(UnicodeEncodeError):
        check_record(None, None, (("\ud800", b""),), None)
