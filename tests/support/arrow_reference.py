"""Decodes records to Arrow columns record by record, as slow as that is: what `decode_arrow` must return."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from barnabas.wire.errors import KafkaError
from barnabas.wire.records.arrow_types import (
    COLUMN_TYPES,
    TIMESTAMP_MS_MAX,
    TIMESTAMP_MS_MIN,
    US_PER_MS,
    WRONG_CHECKSUM,
    Decoded,
    RecordSelection,
    timestamp_out_of_range,
)
from barnabas.wire.records.batch import BatchHeader, crc_matches, iterate_headers
from barnabas.wire.records.bodies import Body, corrupt
from barnabas.wire.records.columns import RecordColumns, columns_of
from barnabas.wire.records.record import RecordHeaders, batch_body, read_headers

#: A record's headers for Arrow.
Structs: TypeAlias = Sequence[Mapping[str, str | bytes | None]]


def decode(buffer: memoryview, selection: RecordSelection) -> Iterator[Decoded]:
    """The selected records of all complete batches, one batch at a time.

    :raises KafkaError: CORRUPT_MESSAGE, INVALID_TIMESTAMP.
    """
    for position, header in _chosen(buffer, selection):
        try:
            body = batch_body(buffer, position, header)
        except KafkaError as error:
            raise corrupt(header, error.message) from error
        records = columns_of(body, [Body(header, 0, len(body))])
        offsets = records.offsets
        rows = [row for row, offset in enumerate(offsets) if selection.low <= offset < selection.high]
        if rows:
            columns = {
                name: pa.array(_READERS[name](records, rows), COLUMN_TYPES[name])
                for name in selection.columns
            }
            yield Decoded(len(rows), columns)


def _chosen(buffer: memoryview, selection: RecordSelection) -> Iterator[tuple[int, BatchHeader]]:
    """Batches with visible records, each with its position."""
    for position, header in iterate_headers(buffer):
        if header.next_offset <= selection.low or header.base_offset >= selection.high:
            continue
        if header.is_control or (header.is_transactional and not selection.admits(header)):
            continue
        if selection.check_crcs and not crc_matches(buffer, position, header):
            raise corrupt(header, WRONG_CHECKSUM)
        yield position, header


def _timestamps_us(records: RecordColumns, rows: Sequence[int]) -> list[int]:
    if any(not TIMESTAMP_MS_MIN <= records.timestamps_ms[row] <= TIMESTAMP_MS_MAX for row in rows):
        raise timestamp_out_of_range(records.headers[0].base_offset)
    return [records.timestamps_ms[row] * US_PER_MS for row in rows]


def _headers(records: RecordColumns, rows: Sequence[int]) -> Sequence[Structs | None]:
    return [
        [{"key": key, "value": value} for key, value in _headers_of(records, row)] or None for row in rows
    ]


def _headers_of(records: RecordColumns, row: int) -> RecordHeaders:
    header, end = records.headers[0], records.ends[row]
    position = records.value_positions[row] + max(records.value_sizes[row], 0)
    try:
        headers, position = read_headers(records.data, position, end, header)
    except IndexError as error:
        raise corrupt(header, "a record is cut off") from error
    if position != end:
        raise corrupt(header, f"a record ends {end - position} bytes before its length says")
    return headers


_READERS: dict[str, Callable[[RecordColumns, Sequence[int]], Sequence[object]]] = {
    "key": lambda records, rows: [records.key(row) for row in rows],
    "value": lambda records, rows: [records.value(row) for row in rows],
    "offset": lambda records, rows: [records.offsets[row] for row in rows],
    "timestamp": _timestamps_us,
    "timestampType": lambda records, rows: [int(records.headers[0].is_log_append_time)] * len(rows),
    "headers": _headers,
}
