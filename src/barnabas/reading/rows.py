"""Record batches of a partition as rows of the connector's schema, in Arrow columns."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from barnabas.wire.records.arrow_decode import decode_arrow
from barnabas.wire.records.arrow_types import COLUMN_TYPES, RecordSelection
from barnabas.wire.records.batch import BatchHeader, iterate_headers
from barnabas.wire.records.compression import Buffer
from barnabas.wire.records.control import read_end_marker

#: The connector's columns in order with their Arrow types; all are nullable, as in Spark.
ARROW_TYPES: dict[str, pa.DataType] = {
    "key": COLUMN_TYPES["key"],
    "value": COLUMN_TYPES["value"],
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": COLUMN_TYPES["offset"],
    "timestamp": COLUMN_TYPES["timestamp"],
    "timestampType": COLUMN_TYPES["timestampType"],
    "headers": COLUMN_TYPES["headers"],
}

_LAST_OFFSET = (1 << 63) - 1

#: Rows of a record batch: with the longest topic name this is far below the limit of 32-bit offsets.
_ROWS_MAX = 1 << 20
#: A column of this many topic names at most is kept for later rows.
_REPEATED_ROWS_MAX = 1 << 16


class AbortedRange(NamedTuple):
    """The offsets of an aborted transaction."""

    producer_id: int
    first_offset: int
    last_offset: int  #: of its marker, or any offset between the marker and the producer's next transaction


class AbortedRanges:
    """The aborted transactions of a partition within the offsets that are read."""

    def __init__(self, ranges: Iterable[AbortedRange] = ()) -> None:
        self._of_producers: dict[int, list[AbortedRange]] = {}
        for aborted in ranges:
            self._of_producers.setdefault(aborted.producer_id, []).append(aborted)

    @classmethod
    def fetched(cls, buffer: Buffer, transactions: Iterable[tuple[int, int]]) -> "AbortedRanges":
        """Build from a fetched buffer, and (producer id, first offset) of the broker's aborted transactions.

        A transaction ends with the producer's first marker after its first offset; if its marker is not in the buffer,
        it extends beyond the buffer.

        :raises KafkaError: CORRUPT_MESSAGE.
        """
        starts = list(transactions)
        markers = _abort_markers(buffer, {producer_id for producer_id, _ in starts})
        ranges = []
        for producer_id, first_offset in starts:
            behind = [offset for offset in markers.get(producer_id, ()) if offset >= first_offset]
            ranges.append(AbortedRange(producer_id, first_offset, min(behind, default=_LAST_OFFSET)))
        return cls(ranges)

    def admits(self, header: BatchHeader) -> bool:
        """Whether the batch was not aborted."""
        ranges = self._of_producers.get(header.producer_id) if header.is_transactional else None
        return ranges is None or not any(
            aborted.first_offset <= header.base_offset <= aborted.last_offset for aborted in ranges
        )


#: For read_uncommitted, or without aborted transactions.
NONE_ABORTED = AbortedRanges()


def arrow_schema_of(columns: Sequence[str]) -> pa.Schema:
    """Return the Arrow schema of these columns in order, exactly as Spark expects it."""
    return pa.schema([pa.field(name, ARROW_TYPES[name]) for name in columns])


def read_arrow(
    buffer: Buffer,
    topic: str,
    partition: int,
    low: int,
    high: int,
    columns: Sequence[str],
    aborted: AbortedRanges = NONE_ABORTED,
    *,
    check_crcs: bool = True,
    null_times: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the records with low <= offset < high in the complete batches of `buffer`, some megabytes at a time.

    Control batches and aborted batches are left out; only `columns`, names of `ARROW_TYPES`, are decoded.

    :param null_times: Whether timestamps that microseconds cannot hold are null instead of an error.
    :raises KafkaError: CORRUPT_MESSAGE, naming the batch; INVALID_TIMESTAMP.
    """
    schema = arrow_schema_of(columns)
    selected = [name for name in columns if name in COLUMN_TYPES]
    selection = RecordSelection(selected, low, high, aborted.admits, check_crcs, null_times)
    for decoded in decode_arrow(buffer, selection):
        for first in range(0, decoded.rows_count, _ROWS_MAX):
            count = min(decoded.rows_count - first, _ROWS_MAX)
            arrays = {name: column.slice(first, count) for name, column in decoded.columns.items()}
            if "topic" in columns:
                arrays["topic"] = _topics(topic, count)
            if "partition" in columns:
                arrays["partition"] = pa.repeat(pa.scalar(partition, pa.int32()), count)
            yield pa.RecordBatch.from_arrays([arrays[name] for name in columns], schema=schema)


def _topics(topic: str, count: int) -> pa.StringArray:
    """Return a column of the repeated name; most parts of a partition have similar row counts and share it."""
    if count > _REPEATED_ROWS_MAX:
        return pa.repeat(topic, count)
    return _repeated(topic, 1 << (count - 1).bit_length()).slice(0, count)


@lru_cache(maxsize=4)
def _repeated(topic: str, count: int) -> pa.StringArray:
    return pa.repeat(topic, count)


def _abort_markers(buffer: Buffer, producer_ids: set[int]) -> dict[int, list[int]]:
    """Return the offsets of these producers' abort markers."""
    offsets: dict[int, list[int]] = {}
    if producer_ids:
        for position, header in iterate_headers(buffer):
            if header.is_control and header.producer_id in producer_ids:
                marker = read_end_marker(buffer, position, header)
                if marker is not None and not marker.commit:
                    offsets.setdefault(header.producer_id, []).append(header.base_offset)
    return offsets
