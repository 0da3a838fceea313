"""The interface of metadata stores: keys with revisions, compare-and-set, a watch.

The adapters are in `barnabas.stores`.
"""

from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple, Protocol

from barnabas.base.store_member import StoreMember

#: The revision of a key that does not exist.
NEVER = 0

#: Limit of the changes in a commit, and of the keys on which it depends, for stores that have none of their own.
CHANGES_MAX = 100_000

#: Limit of the partitions that one of the broker's own commits, or a part of a request, changes.
PARTITIONS_MAX = 1000


class Prefix(str):
    """The beginning of keys, in place of a key.

    A commit that depends on it conflicts if one of these keys was written after the revision. A change removes all of
    them; the commit must change something else, too. It ends in an ASCII character.
    """

    __slots__ = ()

    @property
    def end(self) -> str:
        """The smallest string after all of these keys."""
        return self[:-1] + chr(ord(self[-1]) + 1)


class Item(NamedTuple):
    """A key and its value; `revision` is that of the transaction that last wrote it."""

    key: str
    value: bytes
    revision: int


class StoreChange(NamedTuple):
    """The new value of a key, or None to remove it, or all keys with a `Prefix`."""

    key: str
    value: bytes | None


class Commit(NamedTuple):
    """A committed transaction, as every watcher sees it.

    It has single keys, no `Prefix`. Removals of keys that did not exist may be left out.
    """

    revision: int
    changes: tuple[StoreChange, ...]
    commit_id: str = ""  #: chosen by the writer; unique among the writers of a store


class Conflict(Exception):
    """A key that the transaction depends on has changed; `revision` is the present one of the store."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"the store is at revision {revision} now")
        self.revision = revision


class OutcomeUnknown(Exception):
    """The store did not answer: the transaction may be committed, may still be, or not. The watch shows it."""


class HistoryLost(Exception):
    """The store no longer has all commits since the revision of a watch: load it again."""


class StoreError(Exception):
    """The store cannot be opened or written. The message is for the operator."""


class CommitTooLarge(StoreError):
    """The store allows only smaller commits; nothing was written."""


class WentBack(StoreError):
    """The store has an older state than before, as when a backup is restored.

    A process must not follow it there: topics that the backup lacks would be deleted.
    """

    def __init__(self, store: str, known_revision: int, revision: int) -> None:
        super().__init__(
            f"{store} went back from revision {known_revision} to {revision}, as when a backup is restored; "
            "start the brokers again"
        )


class SessionInUse(StoreError):
    """Another process has opened the session, and lives."""


class Store(Protocol):
    """What `MetadataWriter` requires of a store.

    Revisions count transactions, from 1. A store that is shared with others may leave numbers out.
    """

    @property
    def kind(self) -> str:
        """What holds the data, such as "sqlite", for operators."""
        ...

    @property
    def changes_max(self) -> int:
        """How many changes a commit may have, and on how many keys it may depend; known once the store is loaded."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write to the store."""
        ...

    async def members(self) -> list[StoreMember]:
        """Return the members of the store, also those that are unavailable; none for a file."""
        ...

    async def load(self) -> tuple[int, list[Item]]:
        """Return the revision of the store and all its items.

        :raises WentBack: If it is known to have had a later state.
        :raises StoreError: If it cannot be read.
        """
        ...

    async def latest_revision(self) -> int:
        """Return the revision of the last commit that was made before this call, or of a later one.

        The end of a session may not count as a commit.

        :raises StoreError: If the store cannot be read.
        """
        ...

    async def commit(
        self, reads: Mapping[str, int], changes: tuple[StoreChange, ...], commit_id: str = ""
    ) -> int:
        """Write `changes` in one transaction if every key in `reads` still has that revision; return the revision.

        :raises Conflict: If a key has changed.
        :raises OutcomeUnknown: If the store did not answer.
        :raises CommitTooLarge: If the store allows only smaller commits.
        :raises StoreError: If nothing was written, for example because the disk is full.
        """
        ...

    def watch(self, revision: int) -> AsyncIterator[Commit]:
        """Yield every transaction after `revision` in order, including those of this process.

        :raises HistoryLost: If the store no longer has the next one.
        :raises WentBack: If the store has an older state than before.
        """
        ...

    async def open_session(self, key: str, value: bytes) -> int:
        """Write a key that the store removes when this process ends or stops responding; return the revision.

        If the store has removed the key although the process lives, the session can be opened again.

        :raises SessionInUse: If another process has the session.
        :raises OutcomeUnknown: If the store did not answer.
        :raises StoreError: If nothing was written.
        """
        ...

    async def close_session(self, key: str) -> None:
        """Remove the key of a session that this process has opened."""
        ...

    async def close(self) -> None:
        """Close files and connections."""
        ...
