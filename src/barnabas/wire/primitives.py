"""Encodes and decodes Kafka's primitive types of variable size.

Readers take a buffer and a position and return a value and the end position. They raise `ValueError`, `IndexError` or
`struct.error` for incomplete or invalid bytes, which `barnabas.wire.codec` turns into one error. Source: "Protocol
Primitive Types" of the protocol guide, and KIP-482 for the compact forms.
"""

import struct
from collections.abc import Callable

from barnabas.base.buffers import Buffer

#: More unknown tagged fields are refused: skipping a megabyte of them would take long.
SKIPPED_TAGGED_FIELDS_MAX = 1000

#: The limit of compact strings, too: Apache Kafka refuses longer ones, and older versions of a message cannot carry
#: them.
STRING_BYTES_MAX = 2**15 - 1

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_unpack_int16 = _INT16.unpack_from
_unpack_int32 = _INT32.unpack_from


class Truncated(ValueError):
    """The buffer ended within a value."""

    def __init__(self, wanted_size: int, available_size: int) -> None:
        super().__init__(f"{wanted_size} bytes announced, {available_size} there")


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 5 bytes."""
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 28:
            message = "an unsigned varint is longer than 5 bytes"
            raise ValueError(message)


def write_uvarint(out: bytearray, value: int) -> None:
    """Append an unsigned varint."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _take(buffer: Buffer, position: int, size: int) -> tuple[Buffer, int]:
    end = position + size
    if end > len(buffer):
        raise Truncated(size, len(buffer) - position)
    return buffer[position:end], end


def _null_refused(what: str) -> ValueError:
    return ValueError(f"null where a {what} must be")


def read_string(buffer: Buffer, position: int) -> tuple[str, int]:
    """Read an int16 length and UTF-8."""
    text, position = read_nullable_string(buffer, position)
    if text is None:
        raise _null_refused("string")
    return text, position


def read_nullable_string(buffer: Buffer, position: int) -> tuple[str | None, int]:
    """Read an int16 length, -1 for null, and UTF-8."""
    (size,) = _unpack_int16(buffer, position)
    if size < 0:
        return None, position + 2
    end = position + 2 + size
    if end > len(buffer):
        raise Truncated(size, len(buffer) - position - 2)
    return str(buffer[position + 2 : end], "utf-8"), end


def read_compact_string(buffer: Buffer, position: int) -> tuple[str, int]:
    """Read an unsigned varint of length + 1 and UTF-8."""
    end = position + buffer[position]
    if position < end <= len(buffer) and end - position <= 0x7F:  # a size of one byte, as of most strings
        return str(buffer[position + 1 : end], "utf-8"), end
    text, position = read_compact_nullable_string(buffer, position)
    if text is None:
        raise _null_refused("string")
    return text, position


def read_compact_nullable_string(buffer: Buffer, position: int) -> tuple[str | None, int]:
    """Read an unsigned varint of length + 1, 0 for null, and UTF-8."""
    size = buffer[position]
    position += 1
    if size > 0x7F:
        size, position = read_uvarint(buffer, position - 1)
        if size - 1 > STRING_BYTES_MAX:
            message = f"a string of {size - 1} bytes: {STRING_BYTES_MAX} are the most"
            raise ValueError(message)
    if size == 0:
        return None, position
    end = position + size - 1
    if end > len(buffer):
        raise Truncated(size - 1, len(buffer) - position)
    return str(buffer[position:end], "utf-8"), end


def write_nullable_string(out: bytearray, text: str | None) -> None:
    """Append an int16 length, -1 for null, and UTF-8."""
    if text is None:
        out += b"\xff\xff"
        return
    encoded = text.encode()
    out += _INT16.pack(len(encoded))
    out += encoded


def write_string(out: bytearray, text: str) -> None:
    """Append an int16 length and UTF-8."""
    encoded = text.encode()
    out += _INT16.pack(len(encoded))
    out += encoded


def write_compact_nullable_string(out: bytearray, text: str | None) -> None:
    """Append an unsigned varint of length + 1, 0 for null, and UTF-8."""
    if text is None:
        out.append(0)
    else:
        write_compact_string(out, text)


def write_compact_string(out: bytearray, text: str) -> None:
    """Append an unsigned varint of length + 1 and UTF-8."""
    encoded = text.encode()
    size = len(encoded) + 1
    if size < 0x80:
        out.append(size)
    else:
        write_uvarint(out, size)
    out += encoded


def read_nullable_bytes(buffer: Buffer, position: int) -> tuple[Buffer | None, int]:
    """Read an int32 length, -1 for null, and as many bytes, as a slice of the buffer."""
    (size,) = _unpack_int32(buffer, position)
    if size < 0:
        return None, position + 4
    return _take(buffer, position + 4, size)


def read_bytes(buffer: Buffer, position: int) -> tuple[Buffer, int]:
    """Read an int32 length and as many bytes."""
    value, position = read_nullable_bytes(buffer, position)
    if value is None:
        raise _null_refused("byte string")
    return value, position


def read_compact_nullable_bytes(buffer: Buffer, position: int) -> tuple[Buffer | None, int]:
    """Read an unsigned varint of length + 1, 0 for null, and as many bytes."""
    size, position = read_uvarint(buffer, position)
    if size == 0:
        return None, position
    return _take(buffer, position, size - 1)


def read_compact_bytes(buffer: Buffer, position: int) -> tuple[Buffer, int]:
    """Read an unsigned varint of length + 1 and as many bytes."""
    value, position = read_compact_nullable_bytes(buffer, position)
    if value is None:
        raise _null_refused("byte string")
    return value, position


def write_size(out: bytearray, size: int | None) -> None:
    """Append the int32 length of a byte string or array, -1 for null."""
    out += _INT32.pack(-1 if size is None else size)


def write_compact_size(out: bytearray, size: int | None) -> None:
    """Append the compact length of a byte string or array: length + 1, 0 for null."""
    if size is None:
        out.append(0)
    elif size < 0x7F:
        out.append(size + 1)
    else:
        write_uvarint(out, size + 1)


def read_size(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read the int32 element count of an array, -1 for null; more elements than bytes left are refused."""
    (count,) = _unpack_int32(buffer, position)
    return _bounded_count(buffer, position + 4, count)


def read_compact_size(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read the compact element count of an array, -1 for null; more elements than bytes left are refused."""
    count, position = read_uvarint(buffer, position)
    return _bounded_count(buffer, position, count - 1)


def _bounded_count(buffer: Buffer, position: int, count: int) -> tuple[int, int]:
    if count > len(buffer) - position:
        message = f"an array of {count} elements is announced in {len(buffer) - position} bytes"
        raise ValueError(message)
    return count, position


def read_uuid(buffer: Buffer, position: int) -> tuple[bytes, int]:
    """Read the sixteen bytes of an id."""
    value, position = _take(buffer, position, 16)
    return bytes(value), position


def skip_tagged_fields(buffer: Buffer, position: int) -> int:
    """Return the position after a section of ignored tagged fields (KIP-482)."""
    if not buffer[position]:
        return position + 1
    count, position = read_uvarint(buffer, position)
    if count > SKIPPED_TAGGED_FIELDS_MAX:
        message = f"{count} tagged fields are announced: at most {SKIPPED_TAGGED_FIELDS_MAX} are skipped"
        raise ValueError(message)
    for _ in range(count):
        _, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        _, position = _take(buffer, position, size)
    return position


#: kind -> (reader, writer) of kinds of variable size: plain, nullable, compact, compact nullable
Reader = Callable[[Buffer, int], tuple[object, int]]
STRING_READERS: dict[tuple[bool, bool], Reader] = {
    (False, False): read_string,
    (False, True): read_nullable_string,
    (True, False): read_compact_string,
    (True, True): read_compact_nullable_string,
}
BYTES_READERS: dict[tuple[bool, bool], Reader] = {
    (False, False): read_bytes,
    (False, True): read_nullable_bytes,
    (True, False): read_compact_bytes,
    (True, True): read_compact_nullable_bytes,
}
STRING_WRITERS: dict[tuple[bool, bool], Callable[[bytearray, str], None]] = {
    (False, False): write_string,
    (False, True): write_nullable_string,
    (True, False): write_compact_string,
    (True, True): write_compact_nullable_string,
}
