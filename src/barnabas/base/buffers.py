"""The type of record data that is passed on without copies."""

from mmap import mmap
from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview


def is_truncated(buffer: Buffer) -> bool:
    """Return whether the buffer is in a mapped file that has been truncated since.

    To read the part that is gone would end the process with SIGBUS.
    """
    mapped = buffer.obj if isinstance(buffer, memoryview) else None
    return isinstance(mapped, mmap) and mapped.size() < len(mapped)
