"""Encodes Arrow columns as record batches, record by record: what `ArrowEncoder` must write."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from barnabas.wire.records.arrow_rows import Batching, Columns, Encode, EncodedBatch, Longs, next_sequence
from barnabas.wire.records.batch import BATCH_HEADER_BYTES
from barnabas.wire.records.record import Record, encode_batch, encode_record
from barnabas.wire.records.varint import write_varint


def encoder(rows: Columns) -> Encode:
    """The encoder of checked rows."""
    return partial(_encode_rows, rows)


def _encode_rows(
    rows: Columns, order: Longs, batching: Batching, base_sequence: int
) -> Iterator[EncodedBatch]:
    waiting: list[Record] = []
    size_bytes = BATCH_HEADER_BYTES
    for record in _records(rows, order):
        added_bytes = _size_bytes(record, waiting)
        if waiting and size_bytes + added_bytes > batching.batch_bytes_max:
            yield _encode(waiting, batching, base_sequence)
            base_sequence = next_sequence(base_sequence, len(waiting))
            waiting, size_bytes = [], BATCH_HEADER_BYTES
            added_bytes = _size_bytes(record, waiting)
        waiting.append(record)
        size_bytes += added_bytes
    if waiting:
        yield _encode(waiting, batching, base_sequence)


def _records(rows: Columns, order: Longs) -> Iterator[Record]:
    for row in order.tolist():
        pairs = _item(rows.headers, row) or ()
        headers = tuple((pair["key"], _bytes(pair["value"])) for pair in pairs)
        key, value = _bytes(_item(rows.keys, row)), _bytes(_item(rows.values, row))
        yield Record(0, int(rows.timestamps_ms[row]), key, value, headers)


def _item(column: pa.Array | None, row: int) -> Any:
    return None if column is None else column[row].as_py()


def _bytes(item: str | bytes | None) -> bytes | None:
    return item.encode() if isinstance(item, str) else item


def _size_bytes(record: Record, before: list[Record]) -> int:
    """Size of the record behind those before it."""
    first = before[0] if before else record
    encoded = encode_record(record, record.timestamp_ms - first.timestamp_ms, len(before))
    length = bytearray()
    write_varint(length, len(encoded))
    return len(length) + len(encoded)


def _encode(records: list[Record], batching: Batching, base_sequence: int) -> EncodedBatch:
    data = encode_batch(
        records,
        compression=batching.compression,
        level=batching.level,
        producer_id=batching.producer_id,
        producer_epoch=batching.producer_epoch,
        base_sequence=base_sequence,
        transactional=batching.transactional,
    )
    return EncodedBatch(data, len(records))
