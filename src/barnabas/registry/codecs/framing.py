"""Confluent's wire format: a zero byte, the id of a schema in four bytes, and the value."""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.registry.codecs.errors import MalformedValue

_MAGIC = b"\0"
#: Of a value's header.
HEADER_BYTES = 5
#: The most messages that may contain one another.
_INDEXES_MAX = 100


class FramedValue(NamedTuple):
    """A value without its header."""

    schema_id: int
    body: bytes


def unframed(data: bytes | None) -> FramedValue | None:
    """Return the parts of a value; None if it does not have this format."""
    if data is None or len(data) < HEADER_BYTES or data[:1] != _MAGIC:
        return None
    return FramedValue(int.from_bytes(data[1:HEADER_BYTES], "big"), data[HEADER_BYTES:])


def framed(schema_id: int, body: bytes) -> bytes:
    """Return a value with its header."""
    return _MAGIC + schema_id.to_bytes(HEADER_BYTES - 1, "big") + body


def read_message_indexes(body: bytes) -> tuple[list[int], int]:
    """Return the indexes of a message of Protobuf in its file, and where the message begins.

    A single zero stands for the first message.

    :raises MalformedValue: The value has no indexes.
    """
    count, position = _unzigzag(body, 0)
    if count == 0:
        return [0], position
    if not 0 < count <= _INDEXES_MAX:
        raise MalformedValue("it has no indexes of a message behind its schema id")
    indexes = []
    for _ in range(count):
        index, position = _unzigzag(body, position)
        indexes.append(index)
    return indexes, position


def _unzigzag(body: bytes, position: int) -> tuple[int, int]:
    number = 0
    for index, byte in enumerate(body[position : position + 5]):
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position + index + 1
    raise MalformedValue("it has no indexes of a message behind its schema id")


def written_message_indexes(indexes: Sequence[int]) -> bytes:
    """Return the indexes as they are before a message."""
    if tuple(indexes) == (0,):
        return b"\0"
    out = bytearray()
    for number in (len(indexes), *indexes):
        left = number << 1
        while left > 0x7F:
            out.append(left & 0x7F | 0x80)
            left >>= 7
        out.append(left)
    return bytes(out)
