"""Finds the header of the last complete batch of a fetch."""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

from barnabas.wire.records import batch
from barnabas.wire.records.batch import BatchHeader
from barnabas.wire.records.compression import Buffer


def read_last_header(buffer: Buffer) -> BatchHeader | None:
    """As `batch.read_last_header`, for buffers with thousands of batches.

    :raises KafkaError: CORRUPT_MESSAGE.
    """
    return _select_backend()(buffer)


@cache
def _select_backend() -> Callable[[Buffer], BatchHeader | None]:
    if find_spec("numba") is None:
        return batch.read_last_header
    from barnabas.wire.records import batches_numba

    return batches_numba.read_last_header
