"""Memory that the machine has at hand for the page cache of a measured broker.

A virtual machine may return free memory to its host within a second. Using such a page again costs a fault in the host,
here some 3 µs per KiB written, which counts as system time of the process that touches it first: more than a whole
broker. It says nothing about either broker, and affects whichever runs while memory is short. So some memory is touched
before a round, and freed gradually as it is used.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

POOL_BYTES = 2 << 30
CHUNK = bytes(1 << 20)

#: Free memory ahead of the broker: more would be returned to the host before it is used.
AHEAD_BYTES = 32 << 20
PAUSE_S = 0.005


@contextlib.contextmanager
def warm_memory(pool_bytes: int = POOL_BYTES) -> Iterator[int]:
    """While the block runs, other processes get memory that has been touched, up to `pool_bytes`.

    Yields the file descriptor of the rest.
    """
    pool = os.memfd_create("warm-memory")
    try:
        for position in range(0, pool_bytes, len(CHUNK)):
            os.pwrite(pool, CHUNK, position)
        done = threading.Event()
        keeper = threading.Thread(target=_free_as_used, args=(pool, pool_bytes, done))
        keeper.start()
        try:
            yield pool
        finally:
            done.set()
            keeper.join()
    finally:
        os.close(pool)


def _free_as_used(pool: int, first_bytes: int, done: threading.Event) -> None:
    """Shrink the pool by the memory that other processes have come to use, and `AHEAD_BYTES`."""
    pool_bytes = first_bytes
    started_bytes = used_bytes() - pool_bytes
    while pool_bytes and not done.wait(PAUSE_S):
        grown_bytes = used_bytes() - pool_bytes - started_bytes
        required_bytes = max(first_bytes - grown_bytes - AHEAD_BYTES, 0)
        if required_bytes < pool_bytes:
            pool_bytes = required_bytes
            os.ftruncate(pool, pool_bytes)


def used_bytes() -> int:
    """Return memory that is not free, including caches (proc_meminfo(5))."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    total_kib, free_kib = (int(line.split()[1]) for line in lines[:2])
    return (total_kib - free_kib) << 10
