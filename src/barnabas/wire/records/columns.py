"""Reads records as columns, in one pass and without an object per record.

`read_columns` takes plain bytes and returns arrays of 64-bit numbers, for readers of many records (compaction,
readers of whole topics). If numpy is installed, it reads most fields of all records at once.
"""

from array import array
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

from barnabas.wire.records.batch import BATCH_HEADER_BYTES, BatchHeader, iterate_headers
from barnabas.wire.records.bodies import ZIGZAG, Body, corrupt
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import batch_body
from barnabas.wire.records.varint import read_varint

_COLUMNS_COUNT = 8

#: With fewer records numpy does not pay for its calls and its import.
MANY_RECORDS_COUNT = 500


class RecordColumns(NamedTuple):
    """The records of a buffer's batches, one row each; positions refer to `data`, a negative size is null.

    The columns are `array("q")`, which numpy and Arrow use without copying.
    """

    data: bytes
    headers: list[BatchHeader]  #: of the batches
    first_rows: list[int]  #: first row of each batch, and the total number of rows at the end
    starts: Sequence[int]  #: of a whole record, with its length
    ends: Sequence[int]
    offsets: Sequence[int]
    timestamps_ms: Sequence[int]
    key_positions: Sequence[int]
    key_sizes: Sequence[int]
    value_positions: Sequence[int]
    value_sizes: Sequence[int]

    def key(self, row: int) -> bytes | None:
        size, position = self.key_sizes[row], self.key_positions[row]
        return None if size < 0 else self.data[position : position + size]

    def value(self, row: int) -> bytes | None:
        size, position = self.value_sizes[row], self.value_positions[row]
        return None if size < 0 else self.data[position : position + size]


def read_columns(buffer: bytes) -> RecordColumns:
    """The records of all complete batches in `buffer`, with control batches; the caller checks CRCs.

    Record headers are skipped.

    :raises KafkaError: CORRUPT_MESSAGE.
    """
    return columns_of(*_unpack(buffer))


def columns_of(data: bytes, bodies: Sequence[Body]) -> RecordColumns:
    """As `read_columns`, for decompressed records.

    :raises KafkaError: CORRUPT_MESSAGE.
    """
    first_rows = [0]
    for body in bodies:
        first_rows.append(first_rows[-1] + body.header.records_count)
    read = _select_backend() if first_rows[-1] >= MANY_RECORDS_COUNT else read_bodies
    columns = read(data, bodies)
    return RecordColumns(data, [body.header for body in bodies], first_rows, *columns)


@cache
def _select_backend() -> Callable[[bytes, Sequence[Body]], list[Sequence[int]]]:
    if find_spec("numpy") is None:
        return read_bodies
    from barnabas.wire.records import columns_numpy

    return columns_numpy.read_bodies


def _unpack(buffer: bytes) -> tuple[bytes, list[Body]]:
    """The records in place; if some are compressed, all of them decompressed, one behind the other."""
    batches = list(iterate_headers(buffer))
    if all(header.compression is Compression.NONE for _, header in batches):
        return buffer, [
            Body(header, position + BATCH_HEADER_BYTES, position + header.size_bytes)
            for position, header in batches
        ]
    bodies, parts, end = [], [], 0
    for position, header in batches:
        part = batch_body(buffer, position, header)
        parts.append(part)
        bodies.append(Body(header, end, end + len(part)))
        end += len(part)
    return b"".join(parts), bodies


def read_bodies(data: bytes, bodies: Sequence[Body]) -> list[Sequence[int]]:
    """The columns `starts` to `value_sizes` of all records of `bodies`, each an `array("q")`.

    :raises KafkaError: CORRUPT_MESSAGE.
    """
    rows: list[int] = []
    for body in bodies:
        try:
            _read_rows(data, body, rows)
        except IndexError as error:
            raise corrupt(body.header, "a record is cut off") from error
    try:
        return [array("q", rows[column::_COLUMNS_COUNT]) for column in range(_COLUMNS_COUNT)]
    except OverflowError as error:
        raise corrupt(bodies[0].header, "or a batch behind it: a timestamp of more than 64 bits") from error


def _read_rows(data: bytes, body: Body, rows: list[int]) -> None:
    """Append the eight numbers of each record; one-byte varints, the majority, are read without a call."""
    header, position, end = body
    base_offset, last_delta = header.base_offset, header.last_offset_delta
    base_ms, append_ms = header.base_timestamp, header.max_timestamp if header.is_log_append_time else None
    for _ in range(header.records_count):
        start = position
        if (byte := data[position]) < 0x80:
            size, position = ZIGZAG[byte], position + 1
        else:
            size, position = read_varint(data, position)
        record_end = position + size
        if size < 0 or record_end > end:
            raise corrupt(header, f"a record of {size} bytes where {end - position} are left")
        position += 1  # attributes, unused
        if (byte := data[position]) < 0x80:
            timestamp_delta, position = ZIGZAG[byte], position + 1
        else:
            timestamp_delta, position = read_varint(data, position)
        if (byte := data[position]) < 0x80:
            offset_delta, position = ZIGZAG[byte], position + 1
        else:
            offset_delta, position = read_varint(data, position)
        if not 0 <= offset_delta <= last_delta:
            raise corrupt(header, f"offset delta {offset_delta} is outside [0, {last_delta}]")
        if (byte := data[position]) < 0x80:
            key_size, position = ZIGZAG[byte], position + 1
        else:
            key_size, position = read_varint(data, position)
        key = position
        if key_size > 0:
            position += key_size
        if (byte := data[position]) < 0x80:
            value_size, position = ZIGZAG[byte], position + 1
        else:
            value_size, position = read_varint(data, position)
        if position + value_size >= record_end or position >= record_end:
            raise corrupt(header, "the fields of a record are longer than the record")
        timestamp_ms = base_ms + timestamp_delta if append_ms is None else append_ms
        offset = base_offset + offset_delta
        rows += (start, record_end, offset, timestamp_ms, key, key_size, position, value_size)
        position = record_end
    if position != end:
        raise corrupt(header, f"{end - position} bytes follow the last of {header.records_count} records")
