"""Confluent's wire format: a zero byte, the id of a schema in four bytes, and the value."""

from typing import NamedTuple

_MAGIC = b"\0"
_HEADER_BYTES = 5


class FramedValue(NamedTuple):
    """A value without its header."""

    schema_id: int
    body: bytes


def unframed(data: bytes | None) -> FramedValue | None:
    """Return the parts of a value; None if it does not have this format."""
    if data is None or len(data) < _HEADER_BYTES or data[:1] != _MAGIC:
        return None
    return FramedValue(int.from_bytes(data[1:_HEADER_BYTES], "big"), data[_HEADER_BYTES:])


def framed(schema_id: int, body: bytes) -> bytes:
    """Return a value with its header."""
    return _MAGIC + schema_id.to_bytes(_HEADER_BYTES - 1, "big") + body
