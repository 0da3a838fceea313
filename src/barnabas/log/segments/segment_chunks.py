"""Reads the batches of a segment without its log, a limited number of bytes at a time."""

import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import BATCH_OVERHEAD_BYTES, crc_matches, iterate_headers

_LENGTH = Struct(">i")
_LENGTH_POSITION = 8


def checked_chunks(path: Path, size_bytes: int, step_bytes: int, position: int = 0) -> Iterator[bytes]:
    """Yield the batches of a file between `position` and `size_bytes` in chunks of about `step_bytes`, checking CRCs.

    :raises OSError: When the disk fails, or the file does not exist.
    :raises KafkaError: CORRUPT_MESSAGE.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while position < size_bytes:
            chunk = _read(path, fd, position, size_bytes - position, step_bytes)
            yield chunk
            position += len(chunk)
    finally:
        os.close(fd)


def _read(path: Path, fd: int, position: int, remaining_bytes: int, step_bytes: int) -> bytes:
    data = os.pread(fd, min(step_bytes, remaining_bytes), position)
    if len(data) >= BATCH_OVERHEAD_BYTES:
        first_bytes = _LENGTH.unpack_from(data, _LENGTH_POSITION)[0] + BATCH_OVERHEAD_BYTES
        if len(data) < first_bytes <= remaining_bytes:
            data = os.pread(fd, first_bytes, position)
    end = 0
    for start, header in iterate_headers(data):
        if not crc_matches(data, start, header):
            raise _damaged(path, f"the batch at offset {header.base_offset} does not match its CRC")
        end = start + header.size_bytes
    if end == 0:
        raise _damaged(path, f"no whole batch at byte {position}")
    return data[:end]


def _damaged(path: Path, message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{path}: {message}")
