"""The hash of the metadata: brokers with the same records at the same revision have the same hash."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

from barnabas.base.worker import Worker
from barnabas.metadata.store import Commit, Item

HASH_BYTES = 16
_MODULUS = 1 << (8 * HASH_BYTES)

#: Number of commits whose hashes are kept. Brokers follow the store at different times, so hashes can only be compared
#: at a revision that both brokers remember.
RECENT_COUNT = 100

#: More items are hashed in another thread: an item takes 2 us.
HASHED_AT_ONCE_MAX = 1_000


def hash_record(key: str, value: bytes, revision: int) -> int:
    """Return the hash of a key, its value, and the revision that wrote it."""
    encoded_key = key.encode()
    prefix = b"%d %d " % (revision, len(encoded_key))
    return int.from_bytes(blake2b(prefix + encoded_key + value, digest_size=HASH_BYTES).digest())


def hash_items(items: Iterable[Item]) -> dict[str, int]:
    """Return the hash of each record, by key."""
    return {item.key: hash_record(item.key, item.value, item.revision) for item in items}


def hash_changes(commit: Commit) -> dict[str, int | None]:
    """Return the hash of each written record, and None for each removed one, by key."""
    return {
        change.key: None if change.value is None else hash_record(change.key, change.value, commit.revision)
        for change in commit.changes
    }


class ImageHash:
    """The hash at a revision: the sum of the hashes of all records, so a commit costs only its own changes."""

    def __init__(self, revision: int, record_hashes: dict[str, int]) -> None:
        self._record_hashes = record_hashes
        self._sum = sum(record_hashes.values()) % _MODULUS
        #: revision -> hash, in the order of revisions
        self.recent: dict[int, bytes] = {}
        self.remember(revision)

    def replay(self, revision: int, changes: Mapping[str, int | None]) -> None:
        """Follow a commit; see `hash_changes`."""
        self.add(changes)
        self.remember(revision)

    def add(self, changes: Mapping[str, int | None]) -> None:
        """Add the changes of a commit. May run in another thread, because it does not touch `recent`."""
        hashes = self._record_hashes
        for key, after in changes.items():
            before = hashes.pop(key, 0)
            if after is not None:
                hashes[key] = after
            self._sum += (after or 0) - before
        self._sum %= _MODULUS

    def remember(self, revision: int) -> None:
        """Keep the present hash as that of a revision."""
        self.recent[revision] = self._sum.to_bytes(HASH_BYTES)
        if len(self.recent) > RECENT_COUNT:
            del self.recent[next(iter(self.recent))]


class ImageHasher:
    """Hashes the metadata of one broker. A large store is hashed in another thread, while the broker starts."""

    def __init__(self, worker: Worker | None) -> None:
        self._worker = worker
        self._hash: ImageHash | None = None
        self._later: list[tuple[int, Mapping[str, int | None]]] = []  #: commits during `_load`
        self._loading: asyncio.Task[None] | None = None

    @property
    def recent(self) -> Mapping[int, bytes]:
        """The hashes at the last revisions, by revision; empty until the loaded store is hashed."""
        return self._hash.recent if self._hash is not None else {}

    async def load(self, revision: int, items: Sequence[Item]) -> None:
        """Begin anew with a loaded store."""
        await self.stop()
        if self._worker is None or len(items) <= HASHED_AT_ONCE_MAX:
            self._hash = ImageHash(revision, hash_items(items))
        else:
            loading = self._load(self._worker, revision, items)
            self._loading = asyncio.create_task(loading, name="metadata-hash")

    async def _load(self, worker: Worker, revision: int, items: Sequence[Item]) -> None:
        loaded = await worker.call(lambda: ImageHash(revision, hash_items(items)))
        for commit in self._later:
            loaded.replay(*commit)
        self._later.clear()
        self._hash = loaded

    async def replay(self, revision: int, changes: Mapping[str, int | None]) -> None:
        """Follow a commit; see `hash_changes`. Many changes are added in the other thread."""
        image_hash = self._hash
        if image_hash is None:
            self._later.append((revision, changes))
        elif self._worker is None or len(changes) <= HASHED_AT_ONCE_MAX:
            image_hash.replay(revision, changes)
        else:
            await self._worker.call(lambda: image_hash.add(changes))
            image_hash.remember(revision)

    async def stop(self) -> None:
        """Abandon hashing a loaded store."""
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)
            self._loading = None
        self._hash = None
        self._later.clear()
