"""Arrow columns to whole record batches, ready to be produced, without an object for any record."""

from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec

import numpy as np

from barnabas.wire.records import arrow_encode_plain
from barnabas.wire.records.arrow_rows import Batching, EncodedBatch, Longs, Rows, check_rows
from barnabas.wire.records.batch import NO_SEQUENCE


def encode_arrow(
    rows: Rows, batching: Batching, base_sequence: int = NO_SEQUENCE, order: Longs | None = None
) -> Iterator[EncodedBatch]:
    """The rows, or those in `order`, in as few batches as their size allows; sequences go on from batch to batch.

    :raises KafkaError: INVALID_TIMESTAMP; INVALID_RECORD for a header without a key.
    """
    if order is None:
        order = np.arange(len(rows.timestamps_ms))
    check_rows(rows, order)
    return _quickest()(rows, order, batching, base_sequence)


@cache
def _quickest() -> Callable[[Rows, Longs, Batching, int], Iterator[EncodedBatch]]:
    if find_spec("numba") is None:
        return arrow_encode_plain.encode_rows
    from barnabas.wire.records import arrow_encode_numba

    return arrow_encode_numba.encode_rows
