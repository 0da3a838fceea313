"""Errors for fenced producers: earlier versions do not know PRODUCER_FENCED (KIP-588)."""

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.wire.errors import ErrorCode, KafkaError


@contextmanager
def map_fenced_error(version: int, first_version: int) -> Iterator[None]:
    """Replace PRODUCER_FENCED by INVALID_PRODUCER_EPOCH below the API's first version that has it.

    :raises KafkaError: The errors within the block, after the replacement.
    """
    try:
        yield
    except KafkaError as error:
        if error.code is ErrorCode.PRODUCER_FENCED and version < first_version:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, error.message) from error
        raise
