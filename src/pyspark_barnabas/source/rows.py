"""Record batches of a partition as rows of the connector's schema, in Arrow's columns."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from barnabas.wire.records.arrow_decode import decode_arrow
from barnabas.wire.records.arrow_types import COLUMN_TYPES, Selection
from barnabas.wire.records.batch import BatchHeader, iterate_headers
from barnabas.wire.records.compression import Buffer
from barnabas.wire.records.control import read_end_marker

#: The connector's columns in their order, with the types that Spark gives them; all may be null, as Spark has it.
TYPES: dict[str, pa.DataType] = {
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

#: Rows of a record batch: so many times the longest name of a topic is far from what 32-bit offsets reach.
_ROWS_MAX = 1 << 20
#: A topic's name so many times is kept for the rows that follow; more might be too large to keep.
_REPEATED_ROWS_MAX = 1 << 16


class AbortedRange(NamedTuple):
    """Where the batches of an aborted transaction may lie."""

    producer_id: int
    first_offset: int
    last_offset: (
        int  #: of its marker, or of anything behind it that comes before the producer's next transaction
    )


class AbortedRanges:
    """The aborted transactions of a partition, as far as the offsets that are read go."""

    def __init__(self, ranges: Iterable[AbortedRange] = ()) -> None:
        self._of_producers: dict[int, list[AbortedRange]] = {}
        for each in ranges:
            self._of_producers.setdefault(each.producer_id, []).append(each)

    @classmethod
    def fetched(cls, buffer: Buffer, transactions: Iterable[tuple[int, int]]) -> "AbortedRanges":
        """From a fetched buffer and (producer id, first offset) of what the broker says was aborted.

        A transaction ends with the producer's first marker behind its first offset; one whose marker is not in the
        buffer goes beyond it.

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
        """Whether what the batch holds was not aborted."""
        ranges = self._of_producers.get(header.producer_id) if header.is_transactional else None
        return ranges is None or not any(
            each.first_offset <= header.base_offset <= each.last_offset for each in ranges
        )


#: For those who read uncommitted, or where nothing was aborted.
NONE_ABORTED = AbortedRanges()


def schema_of(columns: Sequence[str]) -> pa.Schema:
    """The Arrow schema of these columns in this order: exactly what Spark expects of them."""
    return pa.schema([pa.field(name, TYPES[name]) for name in columns])


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
) -> Iterator[pa.RecordBatch]:
    """The records with low <= offset < high in the whole batches of `buffer`, some megabytes at a time.

    Control batches and those of aborted transactions are left out; only `columns`, names of `TYPES`, are decoded.

    :raises KafkaError: CORRUPT_MESSAGE, naming the batch, INVALID_TIMESTAMP.
    """
    schema = schema_of(columns)
    wanted = [name for name in columns if name in COLUMN_TYPES]
    for decoded in decode_arrow(buffer, Selection(wanted, low, high, aborted.admits, check_crcs)):
        for first in range(0, decoded.rows_count, _ROWS_MAX):
            count = min(decoded.rows_count - first, _ROWS_MAX)
            found = {name: column.slice(first, count) for name, column in decoded.columns.items()}
            if "topic" in columns:
                found["topic"] = _topics(topic, count)
            if "partition" in columns:
                found["partition"] = pa.repeat(pa.scalar(partition, pa.int32()), count)
            yield pa.RecordBatch.from_arrays([found[name] for name in columns], schema=schema)


def _topics(topic: str, count: int) -> pa.StringArray:
    """The name so many times; most parts of a partition have about as many rows, and share what was made of it."""
    if count > _REPEATED_ROWS_MAX:
        return pa.repeat(topic, count)
    return _repeated(topic, 1 << (count - 1).bit_length()).slice(0, count)


@lru_cache(maxsize=4)
def _repeated(topic: str, count: int) -> pa.StringArray:
    return pa.repeat(topic, count)


def _abort_markers(buffer: Buffer, producer_ids: set[int]) -> dict[int, list[int]]:
    """Offsets of the abort markers of these producers."""
    offsets: dict[int, list[int]] = {}
    if producer_ids:
        for position, header in iterate_headers(buffer):
            if header.is_control and header.producer_id in producer_ids:
                marker = read_end_marker(buffer, position, header)
                if marker is not None and not marker.commit:
                    offsets.setdefault(header.producer_id, []).append(header.base_offset)
    return offsets
