"""How producers are told that they are fenced: those of earlier versions do not know PRODUCER_FENCED (KIP-588)."""

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.wire.errors import ErrorCode, KafkaError


@contextmanager
def map_fenced_error(version: int, first_version: int) -> Iterator[None]:
    """Turn PRODUCER_FENCED into INVALID_PRODUCER_EPOCH below the API's first version that has it.

    :raises KafkaError: What is raised within, so turned.
    """
    try:
        yield
    except KafkaError as error:
        if error.code is ErrorCode.PRODUCER_FENCED and version < first_version:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, error.message) from error
        raise
