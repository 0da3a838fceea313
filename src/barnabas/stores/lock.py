"""A lock that allows either one broker or brokers that share the metadata store."""

from pathlib import Path

from barnabas.base.file_lock import FileLock, Locked
from barnabas.metadata.store import StoreError

LOCK_FILE = "metadata.lock"


class StoreLock:
    """A lock next to the store's file, held until `release` or the end of the process."""

    def __init__(self, directory: Path, *, is_shared: bool = False) -> None:
        """Acquire the lock.

        :raises StoreError: When another broker, in this or another process, holds it, unless both share it.
        """
        try:
            self._lock = FileLock(directory / LOCK_FILE, is_shared=is_shared)
        except Locked as error:
            message = (
                f"The metadata in {directory} is in use by another broker, which holds {LOCK_FILE}. Stop it, or choose "
                "another directory with --data."
            )
            raise StoreError(message) from error

    def release(self) -> None:
        self._lock.release()
