"""Encodes Arrow columns as record batches, without an object per record."""

from collections.abc import Iterator

import numpy as np

from barnabas.wire.records.arrow_rows import Batching, Columns, EncodedBatch, Longs, check_columns
from barnabas.wire.records.batch import NO_SEQUENCE


class ArrowEncoder:
    """Columns that are checked once and encoded partition by partition.

    Pass some megabytes at a time: the output then reuses memory that is still in the processor's caches.
    """

    def __init__(self, rows: Columns) -> None:
        """:param rows: Not copied.
        :raises KafkaError: INVALID_TIMESTAMP; INVALID_RECORD for a header without a key.
        """
        from barnabas.wire.records import arrow_encode_numba  # importing numba takes most of a second

        check_columns(rows)
        self._count = len(rows.timestamps_ms)
        self._encode = arrow_encode_numba.encoder(rows)

    def batches(
        self, batching: Batching, base_sequence: int = NO_SEQUENCE, order: Longs | None = None
    ) -> Iterator[EncodedBatch]:
        """Yield the rows, or those in `order`, in as few batches as their size allows; sequences continue."""
        if order is None:
            order = np.arange(self._count)
        assert not len(order) or 0 <= order.min() <= order.max() < self._count, "rows that there are"
        return self._encode(order, batching, base_sequence)
