"""Rows of one partition to record batches. No IO."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from barnabas.client.accumulator import Identity
from barnabas.wire.records.batch import NO_PRODUCER_ID, NO_SEQUENCE, SEQUENCE_LIMIT
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record, encode_batch
from pyspark_barnabas.sink.errors import SinkError
from pyspark_barnabas.sink.partitioning import Longs


class Columns(NamedTuple):
    """Rows as they are encoded, without where they go; all of one length."""

    keys: pa.Array | None  #: binary; None when no row has one
    values: pa.Array  #: binary
    headers: pa.Array | None  #: list<struct<key string, value binary>>
    timestamps_ms: Longs

    def take(self, rows: Longs) -> "Columns":
        """Those rows, in that order."""
        order = pa.array(rows)
        return Columns(
            None if self.keys is None else self.keys.take(order),
            self.values.take(order),
            None if self.headers is None else self.headers.take(order),
            self.timestamps_ms[rows],
        )

    def slice(self, first: int, end: int) -> "Columns":
        """The rows from `first` to `end`, exclusive, without copying them."""
        return Columns(
            None if self.keys is None else self.keys[first:end],
            self.values[first:end],
            None if self.headers is None else self.headers[first:end],
            self.timestamps_ms[first:end],
        )


@dataclass(frozen=True)
class Encoder:
    """What all batches of a task have in common."""

    identity: Identity | None  #: None for a producer whose repetitions nobody notices
    transactional: bool
    compression: Compression
    batch_bytes: int

    def batches(self, rows: Columns, sizes: Longs, sequence: int) -> Iterator[tuple[bytearray, int]]:
        """The rows in batches of at most `batch_bytes`, but for single rows; with each how many.

        :param sizes: What each row takes, in bytes.
        :raises SinkError: For a header without a key.
        """
        first = 0
        for end in cuts(sizes, self.batch_bytes):
            yield self._encode(rows.slice(first, end), sequence), end - first
            sequence = (sequence + end - first) % SEQUENCE_LIMIT
            first = end

    def _encode(self, rows: Columns, sequence: int) -> bytearray:
        count = len(rows.values)
        keys = [None] * count if rows.keys is None else rows.keys.to_pylist()
        headers = [()] * count if rows.headers is None else map(_headers, rows.headers.to_pylist())
        records = [
            Record(0, timestamp_ms, key, value, pairs)
            for timestamp_ms, key, value, pairs in zip(
                rows.timestamps_ms.tolist(), keys, rows.values.to_pylist(), headers, strict=True
            )
        ]
        return encode_batch(
            records,
            compression=self.compression,
            producer_id=NO_PRODUCER_ID if self.identity is None else self.identity.producer_id,
            producer_epoch=-1 if self.identity is None else self.identity.producer_epoch,
            base_sequence=NO_SEQUENCE if self.identity is None else sequence,
            transactional=self.transactional,
        )


def cuts(sizes: Longs, batch_bytes: int) -> Iterator[int]:
    """Where batches end that are as large as they may be, none empty."""
    ends = np.cumsum(sizes)
    first, before = 0, 0
    while first < len(sizes):
        end = max(first + 1, int(np.searchsorted(ends, before + batch_bytes, side="right")))
        yield end
        first, before = end, int(ends[end - 1])


def _headers(pairs: list[dict[str, str | bytes | None]] | None) -> tuple[tuple[str, bytes | None], ...]:
    found = []
    for pair in pairs or ():
        if pair is None or pair["key"] is None:
            message = "column headers: a header without a key"
            raise SinkError(message)
        found.append((pair["key"], pair["value"]))
    return tuple(found)  # type: ignore[arg-type]
