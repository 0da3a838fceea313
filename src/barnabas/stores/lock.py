"""One broker to a metadata store: a watch sees its own process only, so a second broker would go astray."""

from pathlib import Path

from barnabas.base.file_lock import FileLock, Locked
from barnabas.metadata.store import StoreError

LOCK_FILE = "metadata.lock"


class StoreLock:
    """An exclusive lock beside the store's file, held until `release` or the end of the process."""

    def __init__(self, directory: Path) -> None:
        """Take the lock.

        :raises StoreError: When another broker holds it, of this process or of another.
        """
        try:
            self._lock = FileLock(directory / LOCK_FILE)
        except Locked as error:
            message = f"The metadata in {directory} is in use by another broker, which holds {LOCK_FILE}."
            raise StoreError(message) from error

    def release(self) -> None:
        """Let another broker in."""
        self._lock.release()
