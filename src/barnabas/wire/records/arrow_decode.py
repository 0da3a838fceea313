"""Decodes fetched data or segments to Arrow columns, without an object per record."""

from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec

from barnabas.wire.records import arrow_plain
from barnabas.wire.records.arrow_types import Decoded, Selection
from barnabas.wire.records.compression import Buffer


def decode_arrow(buffer: Buffer, selection: Selection) -> Iterator[Decoded]:
    """The selected records of all complete batches in `buffer`, in parts; no part is empty.

    Timestamps are microseconds; a record without headers has null for headers.

    :raises KafkaError: CORRUPT_MESSAGE, naming the batch; INVALID_TIMESTAMP for one that microseconds cannot hold.
    """
    return _select_backend()(memoryview(buffer).toreadonly(), selection)


@cache
def _select_backend() -> Callable[[memoryview, Selection], Iterator[Decoded]]:
    if find_spec("numba") is None:
        return arrow_plain.decode
    from barnabas.wire.records import arrow_numba

    return arrow_numba.decode
