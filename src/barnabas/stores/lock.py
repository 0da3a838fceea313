"""One broker to a metadata store: a watch sees its own process only, so a second broker would go astray."""

import fcntl
import os
from pathlib import Path

from barnabas.metadata.store import StoreError

LOCK_FILE = "metadata.lock"


class StoreLock:
    """An exclusive lock beside the store's file, held until `release` or the end of the process."""

    def __init__(self, directory: Path) -> None:
        """Take the lock.

        :raises StoreError: When another broker holds it, of this process or of another.
        """
        self._fd = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            message = f"The metadata in {directory} is in use by another broker, which holds {LOCK_FILE}."
            raise StoreError(message) from error

    def release(self) -> None:
        """Let another broker in."""
        os.close(self._fd)
