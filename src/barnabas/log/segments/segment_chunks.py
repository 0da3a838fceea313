"""A segment's batches read beside the log, a bounded number of bytes at a time."""

import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import BATCH_OVERHEAD_BYTES, crc_matches, iterate_headers

_LENGTH = Struct(">i")
_LENGTH_POSITION = 8


def checked_chunks(path: Path, size_bytes: int, step_bytes: int, position: int = 0) -> Iterator[bytes]:
    """The batches from `position` on in the first `size_bytes` of a file, about `step_bytes` at a time, CRCs checked.

    :raises OSError: When the disk fails, or the file is gone.
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


def _read(path: Path, fd: int, position: int, left_bytes: int, step_bytes: int) -> bytes:
    data = os.pread(fd, min(step_bytes, left_bytes), position)
    if len(data) >= BATCH_OVERHEAD_BYTES:
        first_bytes = _LENGTH.unpack_from(data, _LENGTH_POSITION)[0] + BATCH_OVERHEAD_BYTES
        if len(data) < first_bytes <= left_bytes:
            data = os.pread(fd, first_bytes, position)
    end = 0
    for start, header in iterate_headers(data):
        if not crc_matches(data, start, header):
            raise _damaged(path, f"the batch at offset {header.base_offset} does not match its CRC")
        end = start + header.size_bytes
    if end == 0:
        raise _damaged(path, f"there is no whole batch at byte {position}")
    return data[:end]


def _damaged(path: Path, what: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{path}: {what}")
