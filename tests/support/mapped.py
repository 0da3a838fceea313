"""Views of mapped files, as responses have them."""

import mmap
from pathlib import Path


def mapped_file(path: Path, size_bytes: int) -> memoryview:
    """Write a file and return a view of it."""
    path.write_bytes(b"x" * size_bytes)
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
