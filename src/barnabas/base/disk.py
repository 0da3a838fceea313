"""Every change of a file that must survive a crash.

The log uses these functions and no others, so that the simulator can replace them: it forgets what was not flushed,
tears writes, and fails. Reads go to the files directly. All functions block and raise OSError when the disk fails.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from barnabas.base.buffers import Buffer

#: Truncate an open file, or extend it with zeros: descriptor, size in bytes.
truncate: Callable[[int, int], None] = os.ftruncate

#: Write at a position of an open file: descriptor, data, position. Return the number of bytes written.
write_at: Callable[[int, Buffer, int], int] = os.pwrite


def open_file(path: Path) -> int:
    """Open a file for reading and writing; create it if it does not exist. Return the descriptor."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


def allocate(fd: int, size_bytes: int) -> None:
    """Reserve space for an open file, which gets this size."""
    os.posix_fallocate(fd, 0, size_bytes)


def write_file(path: Path, data: Buffer, *, sync: bool = False) -> None:
    """Create a file, or replace its content; flush it with `sync`."""
    with path.open("wb") as file:
        file.write(data)
        if sync:
            file.flush()
            os.fsync(file.fileno())


def append_to_file(path: Path, data: Buffer) -> None:
    """Append to a file; create it if it does not exist."""
    with path.open("ab") as file:
        file.write(data)


def truncate_file(path: Path, size_bytes: int) -> None:
    """Truncate a file that is not open."""
    os.truncate(path, size_bytes)


def rename(path: Path, target: Path) -> Path:
    """Rename a file or directory; a file that has the new name is replaced. Return the new path."""
    return path.replace(target)


def remove_file(path: Path) -> None:
    """Remove a file, if it exists."""
    path.unlink(missing_ok=True)


def make_directory(path: Path, *, parents: bool = False, exist_ok: bool = False) -> None:
    path.mkdir(parents=parents, exist_ok=exist_ok)


def remove_directory(path: Path) -> None:
    """Remove a directory with its content, as far as possible."""
    shutil.rmtree(path, ignore_errors=True)


def sync_path(path: Path) -> None:
    """Flush a file or a directory to the disk; do nothing if it does not exist."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_file_system(path: Path) -> bool:
    """Flush the whole file system that contains `path`.

    For thousands of files this takes a small part of the time of one `sync_path` per file.

    :return: False if the operating system does not support it.
    """
    import ctypes  # slow to import, and only needed for many files

    flush = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if flush is None:
        return False
    fd = os.open(path, os.O_RDONLY)
    try:
        if flush(fd) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
    finally:
        os.close(fd)
    return True
