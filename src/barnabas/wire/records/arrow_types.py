"""The Arrow columns of records, and the selection of records."""

from collections.abc import Callable, Collection
from typing import NamedTuple

import pyarrow as pa

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import BatchHeader

US_PER_MS = 1_000
#: Larger values do not fit into 64 bits as microseconds.
TIMESTAMP_MS_MAX = ((1 << 63) - 1) // US_PER_MS
TIMESTAMP_MS_MIN = -TIMESTAMP_MS_MAX

#: A record header.
HEADER_TYPE = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])

#: The columns by the names of Spark's Kafka source.
COLUMN_TYPES: dict[str, pa.DataType] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.field("element", HEADER_TYPE)),
}

#: The error message for a batch that was changed in transit.
WRONG_CHECKSUM = "its checksum is not that of its bytes"

OFFSET_END = (1 << 63) - 1


def admit_every_batch(_: BatchHeader) -> bool:
    """Select every batch (isolation level read_uncommitted)."""
    return True


class RecordSelection(NamedTuple):
    """Which records and columns of a buffer to read."""

    columns: Collection[str]  #: names of `COLUMN_TYPES`
    low: int = 0  #: first offset
    high: int = OFFSET_END  #: end offset
    #: Whether a transactional batch is visible; others always are, control batches never.
    admits: Callable[[BatchHeader], bool] = admit_every_batch
    check_crcs: bool = True
    null_times: bool = False  #: whether timestamps that microseconds cannot hold are null instead of an error


class Decoded(NamedTuple):
    """Decoded records in log order."""

    rows_count: int
    columns: dict[str, pa.Array]


def timestamp_out_of_range(base_offset: int) -> KafkaError:
    """Return the error for a timestamp that microseconds cannot hold."""
    message = (
        f"batch at offset {base_offset}: a timestamp is outside of what microseconds can hold, "
        f"[{TIMESTAMP_MS_MIN}, {TIMESTAMP_MS_MAX}] ms"
    )
    return KafkaError(ErrorCode.INVALID_TIMESTAMP, message)
