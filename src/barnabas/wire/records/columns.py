"""Reads records as columns, in one pass and without an object per record.

`read_columns` takes plain bytes and returns arrays of 64-bit numbers, for readers of many records (compaction,
readers of whole topics).
"""

from array import array
from collections.abc import Sequence
from itertools import accumulate
from types import ModuleType
from typing import NamedTuple

from barnabas.wire.errors import KafkaError
from barnabas.wire.records import walk
from barnabas.wire.records.batch import (
    BATCH_HEADER_BYTES,
    COMPRESSION_MASK,
    LOG_APPEND_TIME_BIT,
    BatchHeader,
    iterate_headers,
)
from barnabas.wire.records.bodies import Body, corrupt_records, impossible_count
from barnabas.wire.records.kernels import find_kernels
from barnabas.wire.records.record import batch_body

#: From `starts` to `value_sizes`.
COLUMNS_COUNT = 8

#: With fewer records numba does not pay for its import.
MANY_RECORDS_COUNT = 500

_BATCH_NUMBERS = walk.IS_APPEND_TIME + 1


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
    """Return the records of all complete batches in `buffer`, with control batches; the caller checks CRCs.

    Record headers are skipped.

    :raises KafkaError: CORRUPT_MESSAGE.
    """
    return columns_of(*_unpack(buffer))


def columns_of(data: bytes, bodies: Sequence[Body]) -> RecordColumns:
    """As `read_columns`, for decompressed records.

    :raises KafkaError: CORRUPT_MESSAGE.
    """
    headers = [body.header for body in bodies]
    first_rows = [0, *accumulate(header.records_count for header in headers)]
    kernels = find_kernels() if first_rows[-1] >= MANY_RECORDS_COUNT else walk
    return RecordColumns(data, headers, first_rows, *read_bodies(data, bodies, kernels))


def read_bodies(data: bytes, bodies: Sequence[Body], kernels: ModuleType) -> list[Sequence[int]]:
    """Return the columns `starts` to `value_sizes` of all records of `bodies`, each an `array("q")`.

    :param kernels: A form of the module `walk`.
    :raises KafkaError: CORRUPT_MESSAGE.
    """
    numbers: list[int] = []
    for header, position, end in bodies:
        base_offset, _, _, _, _, attributes, last_delta, base_ms, max_ms, _, _, _, count = header
        is_append_time = attributes & LOG_APPEND_TIME_BIT
        numbers += (position, end, count, base_offset, last_delta, base_ms, max_ms, is_append_time)
    counts = numbers[walk.RECORDS_COUNT :: _BATCH_NUMBERS]
    rows_count = sum(counts)
    if min(counts, default=0) < 0 or rows_count * walk.RECORD_BYTES_MIN > len(data):
        raise _impossible_count(bodies)
    columns = [array("q", bytes(8 * rows_count)) for _ in range(COLUMNS_COUNT)]
    batches = array("q", numbers)
    problem, batch = kernels.scan_records_unlocked(data, batches, len(bodies), _BATCH_NUMBERS, *columns)
    if problem:
        raise corrupt_records(bodies[batch].header.base_offset, problem)
    return [*columns]


def _impossible_count(bodies: Sequence[Body]) -> KafkaError:
    header = next(
        header
        for header, position, end in bodies
        if not 0 <= header.records_count <= (end - position) // walk.RECORD_BYTES_MIN
    )
    return impossible_count(header.base_offset, header.records_count)


def _unpack(buffer: bytes) -> tuple[bytes, list[Body]]:
    """Return the records in place; if some are compressed, all of them decompressed, one behind the other."""
    batches = list(iterate_headers(buffer))
    if not any(header.attributes & COMPRESSION_MASK for _, header in batches):
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
