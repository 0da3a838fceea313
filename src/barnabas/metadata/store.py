"""The interface of metadata stores: keys with revisions, compare-and-set, a watch.

The adapters are in `barnabas.stores`.
"""

from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple, Protocol

#: The revision of a key that does not exist.
NEVER = 0


class Item(NamedTuple):
    """A key and its value; `revision` is that of the transaction that last wrote it."""

    key: str
    value: bytes
    revision: int


class StoreChange(NamedTuple):
    """The new value of a key, or None to remove it."""

    key: str
    value: bytes | None


class Commit(NamedTuple):
    """A committed transaction, as every watcher sees it."""

    revision: int
    changes: tuple[StoreChange, ...]


class Conflict(Exception):
    """A key that the transaction depends on has changed; `revision` is the present one of the store."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"the store is at revision {revision} now")
        self.revision = revision


class StoreError(Exception):
    """The store cannot be opened or written. The message is for the operator."""


class Store(Protocol):
    """What `MetadataWriter` requires of a store. Revisions count transactions, from 1."""

    async def load(self) -> tuple[int, list[Item]]:
        """Return the revision of the store and all its items.

        :raises StoreError: If it cannot be read.
        """
        ...

    async def commit(self, reads: Mapping[str, int], changes: tuple[StoreChange, ...]) -> int:
        """Write `changes` in one transaction if every key in `reads` still has that revision; return the revision.

        :raises Conflict: If a key has changed.
        :raises StoreError: If the disk fails.
        """
        ...

    def watch(self, revision: int) -> AsyncIterator[Commit]:
        """Yield every transaction after `revision` in order, including those of this process."""
        ...

    async def close(self) -> None:
        """Close files and connections."""
        ...
