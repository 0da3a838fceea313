"""Decodes fetched data or segments to Arrow columns, without an object per record."""

from collections.abc import Iterator

from barnabas.wire.records.arrow_types import Decoded, RecordSelection
from barnabas.wire.records.compression import Buffer


def decode_arrow(buffer: Buffer, selection: RecordSelection) -> Iterator[Decoded]:
    """Return the selected records of all complete batches in `buffer`, in parts; no part is empty.

    Timestamps are microseconds; a record without headers has null for headers.

    :raises KafkaError: CORRUPT_MESSAGE, naming the batch; INVALID_TIMESTAMP for one that microseconds cannot hold,
        unless it is to be null.
    """
    from barnabas.wire.records import arrow_decode_numba  # importing numba takes most of a second

    return arrow_decode_numba.decode(memoryview(buffer).toreadonly(), selection)
