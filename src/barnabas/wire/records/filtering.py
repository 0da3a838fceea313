"""Removes records from batches, for compaction."""

from collections.abc import Sequence

from barnabas.wire.records.batch import (
    BATCH_HEADER_BYTES,
    BATCH_OVERHEAD_BYTES,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
)
from barnabas.wire.records.columns import RecordColumns
from barnabas.wire.records.compression import compress
from barnabas.wire.records.record import assemble
from barnabas.wire.records.varint import read_varint, write_varint

#: Attributes of a batch without records: nothing is compressed, and there is no tombstone.
EMPTY_ATTRIBUTES = LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT

_INT64_MAX = (1 << 63) - 1
_INT64_MIN = -1 - _INT64_MAX


def filter_batch(
    columns: RecordColumns, batch: int, rows: Sequence[int], delete_horizon_ms: int | None = None
) -> bytearray:
    """Return the batch of that index with only the records in `rows`; offsets, sequences, producer and codec stay.

    `delete_horizon_ms` is set on a batch that has none: its tombstones may be removed after that time (KIP-534). It
    becomes the base of the timestamps, so a batch gets none if it has a timestamp that is too far from it.
    """
    header = columns.headers[batch]
    assert rows, "a batch without records is made by empty_batch"
    assert delete_horizon_ms is None or not header.has_delete_horizon, header
    if delete_horizon_ms is not None and not _is_base(delete_horizon_ms, columns, rows):
        delete_horizon_ms = None
    max_timestamp = header.max_timestamp
    if not header.is_log_append_time:
        max_timestamp = max(columns.timestamps_ms[row] for row in rows)
    if delete_horizon_ms is None:
        records = b"".join([columns.data[columns.starts[row] : columns.ends[row]] for row in rows])
    else:
        records = _rebased(columns, rows, delete_horizon_ms)
        header = header._replace(
            attributes=header.attributes | DELETE_HORIZON_BIT, base_timestamp=delete_horizon_ms
        )
    body = compress(header.compression, records)
    return _with_body(header._replace(max_timestamp=max_timestamp, records_count=len(rows)), body)


def _is_base(base_timestamp: int, columns: RecordColumns, rows: Sequence[int]) -> bool:
    """Whether the differences from it to all timestamps have 64 bits."""
    return all(_INT64_MIN <= columns.timestamps_ms[row] - base_timestamp <= _INT64_MAX for row in rows)


def _rebased(columns: RecordColumns, rows: Sequence[int], base_timestamp: int) -> bytes:
    """Return the records with timestamp deltas relative to another base."""
    data, body = columns.data, bytearray()
    for row in rows:
        end = columns.ends[row]
        _, attributes = read_varint(data, columns.starts[row])
        _, rest = read_varint(data, attributes + 1)
        record = bytearray(data[attributes : attributes + 1])
        write_varint(record, columns.timestamps_ms[row] - base_timestamp)
        record += data[rest:end]
        write_varint(body, len(record))
        body += record
    return bytes(body)


def empty_batch(header: BatchHeader) -> bytearray:
    """Only the header of a batch without records: it preserves offsets and sequences."""
    empty = header._replace(
        attributes=header.attributes & EMPTY_ATTRIBUTES,
        base_timestamp=header.max_timestamp,
        records_count=0,
    )
    return _with_body(empty, b"")


def _with_body(header: BatchHeader, body: bytes) -> bytearray:
    batch = bytearray(BATCH_HEADER_BYTES + len(body))
    return assemble(batch, header._replace(batch_length=len(batch) - BATCH_OVERHEAD_BYTES), body)
