"""Memory before a guard page: reading one byte too many ends the process."""

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager

_PROTECT_NONE = 0


@contextmanager
def guarded(size_max_bytes: int) -> Iterator[memoryview]:
    """Return at least this many bytes, rounded up to pages; test data belongs at their end."""
    pages_bytes = -(-size_max_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, pages_bytes + mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    library = ctypes.CDLL(None, use_errno=True)
    protect = library.mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    assert protect(address + pages_bytes, mmap.PAGESIZE, _PROTECT_NONE) == 0, ctypes.get_errno()
    with memoryview(memory) as view:
        yield view[:pages_bytes]
