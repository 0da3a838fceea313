"""Memory that the machine has at hand, for the page cache of a broker that is measured.

A virtual machine may give free memory back to its host within a second. Each page that is used again then costs a fault
in the host, here some 3 µs per KiB written, which counts as the system time of the process that touches it first: more
than a whole broker. It says nothing about either broker, and falls on whoever runs while memory is short. So some
memory is touched before a round, and freed little by little as it is asked for.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

POOL_BYTES = 2 << 30
CHUNK = bytes(1 << 20)

#: What is free ahead of the broker: more would go back to the host before it is used.
AHEAD_BYTES = 32 << 20
PAUSE_S = 0.005


@contextlib.contextmanager
def warm_memory(pool_bytes: int = POOL_BYTES) -> Iterator[int]:
    """While the block runs, whoever needs memory gets what has been touched, up to `pool_bytes`.

    Gives the file descriptor of what is left.
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
    """Shrink the pool by what all others have come to use, and `AHEAD_BYTES`."""
    pool_bytes = first_bytes
    started_bytes = used_bytes() - pool_bytes
    while pool_bytes and not done.wait(PAUSE_S):
        grown_bytes = used_bytes() - pool_bytes - started_bytes
        wanted_bytes = max(first_bytes - grown_bytes - AHEAD_BYTES, 0)
        if wanted_bytes < pool_bytes:
            pool_bytes = wanted_bytes
            os.ftruncate(pool, pool_bytes)


def used_bytes() -> int:
    """Memory that is not free, caches included (proc_meminfo(5))."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    total_kib, free_kib = (int(line.split()[1]) for line in lines[:2])
    return (total_kib - free_kib) << 10
