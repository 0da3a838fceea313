"""Arrow columns of records by plain Python: what the kernels must equal, and what is used without numba."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from barnabas.wire.records.arrow_types import (
    COLUMN_TYPES,
    TIMESTAMP_MS_MAX,
    TIMESTAMP_MS_MIN,
    US_PER_MS,
    Decoded,
    Selection,
    outside_of_time,
)
from barnabas.wire.records.bodies import Body, corrupt
from barnabas.wire.records.columns import RecordColumns, columns_of
from barnabas.wire.records.compression import Buffer
from barnabas.wire.records.record import RecordHeaders, read_headers

#: A record's headers as Arrow takes them.
Structs: TypeAlias = Sequence[Mapping[str, str | bytes | None]]


def decode_bodies(data: Buffer, bodies: Sequence[Body], selection: Selection) -> Decoded:
    """The wanted columns of the records in `bodies` whose offsets lie in the selection.

    :raises KafkaError: CORRUPT_MESSAGE, INVALID_TIMESTAMP.
    """
    records = columns_of(bytes(data), bodies)
    offsets = records.offsets
    rows = [row for row, offset in enumerate(offsets) if selection.low <= offset < selection.high]
    columns = {
        name: pa.array(_READERS[name](records, rows), COLUMN_TYPES[name]) for name in selection.columns
    }
    return Decoded(len(rows), columns)


def _timestamps_us(records: RecordColumns, rows: Sequence[int]) -> list[int]:
    for batch, row in _with_batches(records, rows):
        if not TIMESTAMP_MS_MIN <= records.timestamps_ms[row] <= TIMESTAMP_MS_MAX:
            raise outside_of_time(records.headers[batch])
    return [records.timestamps_ms[row] * US_PER_MS for row in rows]


def _headers(records: RecordColumns, rows: Sequence[int]) -> Sequence[Structs | None]:
    found = []
    for batch, row in _with_batches(records, rows):
        headers = _headers_of(records, batch, row)
        found.append([{"key": key, "value": value} for key, value in headers] or None)
    return found


def _headers_of(records: RecordColumns, batch: int, row: int) -> RecordHeaders:
    header, end = records.headers[batch], records.ends[row]
    position = records.value_positions[row] + max(records.value_sizes[row], 0)
    try:
        headers, position = read_headers(records.data, position, end, header)
    except IndexError as error:
        raise corrupt(header, "a record is cut off") from error
    if position != end:
        raise corrupt(header, f"a record ends {end - position} bytes before its length says")
    return headers


def _with_batches(records: RecordColumns, rows: Sequence[int]) -> list[tuple[int, int]]:
    """Each row with the index of its batch."""
    batches, batch = [], 0
    for row in rows:
        while row >= records.first_rows[batch + 1]:
            batch += 1
        batches.append((batch, row))
    return batches


_READERS: dict[str, Callable[[RecordColumns, Sequence[int]], Sequence[object]]] = {
    "key": lambda records, rows: [records.key(row) for row in rows],
    "value": lambda records, rows: [records.value(row) for row in rows],
    "offset": lambda records, rows: [records.offsets[row] for row in rows],
    "timestamp": _timestamps_us,
    "timestampType": lambda records, rows: [
        int(records.headers[batch].is_log_append_time) for batch, _ in _with_batches(records, rows)
    ],
    "headers": _headers,
}
