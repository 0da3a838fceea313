"""The port through which cluster state is kept: keys with revisions, compare-and-set, a watch.

SQLite on one machine and etcd in a cluster stand behind it (`barnabas.stores`).
"""

from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple, Protocol

#: The revision of a key that does not exist.
NEVER = 0


class Item(NamedTuple):
    """A key as the store holds it; `revision` is that of the transaction that last wrote it."""

    key: str
    value: bytes
    revision: int


class StoreChange(NamedTuple):
    """One key as it is to be: a value, or None to remove it."""

    key: str
    value: bytes | None


class Commit(NamedTuple):
    """A transaction that has happened, as every watcher sees it."""

    revision: int
    changes: tuple[StoreChange, ...]


class Conflict(Exception):
    """Something that a decision rests on has moved; `revision` is where the store is now."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"the store has moved on to revision {revision}")
        self.revision = revision


class StoreError(Exception):
    """A store that cannot be opened or written; the message is for whoever runs the broker."""


class Store(Protocol):
    """What `MetadataWriter` needs of a store. Revisions count up by transactions, from 1."""

    async def load(self) -> tuple[int, list[Item]]:
        """The store's revision and everything in it.

        :raises StoreError: When there is no reading it.
        """
        ...

    async def commit(self, reads: Mapping[str, int], changes: tuple[StoreChange, ...]) -> int:
        """Write `changes` in one transaction if every key in `reads` still has that revision.

        :returns: The transaction's revision.
        :raises Conflict: When a key has moved.
        :raises StoreError: When the disk refuses.
        """
        ...

    def watch(self, revision: int) -> AsyncIterator[Commit]:
        """Every transaction after `revision`, in order, this process's own included."""
        ...

    async def close(self) -> None:
        """Let go of files and connections."""
        ...
