"""Arrow columns to encode: the rows, and the common properties of their batches."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.arrow_types import TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN
from barnabas.wire.records.batch import NO_PRODUCER_ID, NO_SEQUENCE, SEQUENCE_LIMIT
from barnabas.wire.records.compression import Compression

Longs: TypeAlias = NDArray[np.int64]


class Columns(NamedTuple):
    """The fields of records: columns of one length; None is null in every row."""

    keys: pa.Array | None  #: binary or string, also large; so are the values
    values: pa.Array | None
    headers: pa.Array | None  #: list<struct<key string, value binary>>; null for none
    timestamps_ms: Longs


class Batching(NamedTuple):
    """The common properties of a producer's batches."""

    batch_bytes_max: int  #: of a batch before compression, with its header; a single record may be larger
    compression: Compression = Compression.NONE
    level: int | None = None
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1
    transactional: bool = False


class EncodedBatch(NamedTuple):
    """A complete batch with its CRC."""

    data: bytearray | memoryview
    records_count: int


#: Encodes rows: which, in this order, how, and from which sequence on.
Encode: TypeAlias = Callable[[Longs, Batching, int], Iterator[EncodedBatch]]


def next_sequence(base_sequence: int, records_count: int) -> int:
    """Return the base sequence of the next batch."""
    return NO_SEQUENCE if base_sequence == NO_SEQUENCE else (base_sequence + records_count) % SEQUENCE_LIMIT


def check_columns(rows: Columns) -> None:
    """Refuse values that no record can hold.

    :raises KafkaError: INVALID_TIMESTAMP; INVALID_RECORD for a header without a key.
    """
    times_ms, count = rows.timestamps_ms, len(rows.timestamps_ms)
    assert all(column is None or len(column) == count for column in rows[:3]), "columns of one length"
    if count and not TIMESTAMP_MS_MIN <= times_ms.min() <= times_ms.max() <= TIMESTAMP_MS_MAX:
        message = (
            f"timestamps from {times_ms.min()} to {times_ms.max()} ms: the maximum is {TIMESTAMP_MS_MAX}"
        )
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, message)
    if rows.headers is not None:
        pairs = rows.headers.flatten()
        if pairs.null_count or pairs.field("key").null_count:
            raise KafkaError(ErrorCode.INVALID_RECORD, "a header of a record has no key")
