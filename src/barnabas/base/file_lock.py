"""A lock file that one process holds at a time; the operating system releases it when the process ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Locked(Exception):
    """Raised when another process holds the lock."""


class FileLock:
    """A lock on a file, created if needed, held until `release` or the end of the process."""

    def __init__(self, path: Path, *, is_shared: bool = False) -> None:
        """Take the lock.

        :param is_shared: Other processes may hold the lock, if they share it, too.
        :raises Locked: When another process holds it.
        :raises OSError: When the file cannot be opened, or its file system has no locks.
        """
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            if isinstance(error, BlockingIOError):
                raise Locked(str(path)) from error
            raise

    def write(self, content: bytes) -> None:
        """Write the beginning of the file, for other processes to read."""
        os.pwrite(self._fd, content, 0)

    def release(self) -> None:
        os.close(self._fd)


@contextmanager
def locked(path: Path, busy: Exception) -> Iterator[None]:
    """Hold the lock on a file, whose directory is created if needed.

    :raises Exception: `busy`, when another process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(path)
    except Locked:
        raise busy from None
    try:
        yield
    finally:
        lock.release()


def is_held(path: Path) -> bool:
    """Whether a process holds an exclusive lock on the file; False for a missing file."""
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
