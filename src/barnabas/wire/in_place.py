"""Helpers of codecs that read requests and write responses in place, without message objects."""

import struct
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from barnabas.base.buffers import Buffer
from barnabas.wire.codec import DecodeError
from barnabas.wire.primitives import write_compact_size, write_compact_string, write_size, write_string
from barnabas.wire.schema import Message

BufferT = TypeVar("BufferT", bound=Buffer)
DataT = TypeVar("DataT")
Arguments = TypeVarTuple("Arguments")

_BAD_BYTES = (ValueError, IndexError, struct.error)


def read_body(
    message: type[Message],
    version: int,
    read: Callable[[BufferT, int, int, *Arguments], tuple[DataT, int]],
    buffer: BufferT,
    position: int,
    *arguments: *Arguments,
) -> DataT:
    """Call `read(buffer, position, version, ...)`, which returns its result and the end position.

    :raises DecodeError: When the bytes are incomplete or invalid.
    """
    try:
        data, end = read(buffer, position, version, *arguments)
    except _BAD_BYTES as error:
        text = f"{message.__name__} version {version} cannot be read: {error}"
        raise DecodeError(text) from error
    if end > len(buffer):
        text = f"{message.__name__} version {version} cannot be read: it ends {end - len(buffer)} bytes too early"
        raise DecodeError(text)
    return data


def elements(count: int) -> range:
    """Return the element count of an array.

    :raises ValueError: When it is null.
    """
    if count < 0:
        raise ValueError("null where an array must be")
    return range(count)


def count_writer(is_flexible: bool) -> Callable[[bytearray, int], None]:
    """Return the function that appends an array's element count."""
    return write_compact_size if is_flexible else write_size


def write_topic(out: bytearray, topic: str | bytes, is_flexible: bool) -> None:
    """Append a topic's id or name."""
    if isinstance(topic, bytes):
        out += topic
    elif is_flexible:
        write_compact_string(out, topic)
    else:
        write_string(out, topic)
