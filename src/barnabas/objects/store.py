"""What Barnabas needs of a store of objects: a directory, or a prefix in an object store.

Keys are names below the location, with slashes. An object becomes visible as a whole, or not at all: also after a crash
in the middle of a write.
"""

from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple, Protocol


class ObjectStoreError(OSError):
    """A request to a store failed; the message has no secrets."""


class ObjectNotFound(ObjectStoreError, FileNotFoundError):
    """An object does not exist."""


class StoredObject(NamedTuple):
    """Key of an object, and its size."""

    key: str
    size_bytes: int


class ObjectStore(Protocol):
    """Objects at one location. All methods block, and raise `ObjectStoreError` when the store fails."""

    def list(self, prefix: str = "") -> Iterator[StoredObject]:
        """Yield the objects whose keys begin with the directory `prefix`, in any order."""
        ...

    def directories(self) -> set[str]:
        """Return the names of the directories at the location: the parts of keys before the first slash."""
        ...

    def size_bytes(self, key: str) -> int:
        """Return the size of an object.

        :raises ObjectNotFound: There is no such object.
        """
        ...

    def modified_ms(self, key: str) -> int:
        """Return when an object was written, in ms since the epoch.

        :raises ObjectNotFound: There is no such object.
        """
        ...

    def read(self, key: str) -> bytes:
        """Return the content of a small object.

        :raises ObjectNotFound: There is no such object.
        """
        ...

    def open(self, key: str) -> BinaryIO:
        """Open an object for reading at any position; only a few MiB of it are in memory at a time.

        :raises ObjectNotFound: There is no such object.
        """
        ...

    def write(self, key: str, chunks: Iterable[bytes]) -> int:
        """Write an object or replace it, and return its size in bytes. If `chunks` raises an error, nothing is visible.

        Only a few chunks are in memory at a time.
        """
        ...

    def create(self, key: str, content: bytes) -> bool:
        """Write an object unless one exists. Return whether it now has this content.

        Of several processes that create the same key with different contents, one gets True. The content must be
        unique to the caller: a retry after a lost response finds its own object.
        """
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; those that do not exist are ignored."""
        ...
