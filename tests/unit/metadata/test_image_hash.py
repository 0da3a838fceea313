import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.worker import Worker
from barnabas.metadata.brokers import decide_register
from barnabas.metadata.image_hash import (
    HASHED_AT_ONCE_MAX,
    RECENT_COUNT,
    ImageHash,
    ImageHasher,
    hash_changes,
    hash_items,
    hash_record,
)
from barnabas.metadata.store import Commit, Item, StoreChange
from barnabas.metadata.writer import MetadataWriter
from support.images import broker
from support.loop import on_loop
from support.memory_store import MemoryStore

KEYS = st.sampled_from(["topics/a", "topics/b", "acls/a", "brokers/1"])
COMMITS = st.lists(st.dictionaries(KEYS, st.none() | st.binary(max_size=3), min_size=1))


def hash_of(revision: int, items: Sequence[Item]) -> bytes:
    return ImageHash(revision, hash_items(items)).recent[revision]


@given(COMMITS)
def test_a_broker_that_follows_has_the_hash_of_one_that_loads(commits: list[dict[str, bytes | None]]) -> None:
    followed, items = ImageHash(0, {}), dict[str, Item]()
    for revision, changes in enumerate(commits, 1):
        commit = Commit(revision, tuple(StoreChange(*change) for change in changes.items()))
        followed.replay(revision, hash_changes(commit))
        for key, value in changes.items():
            items.pop(key, None)
            if value is not None:
                items[key] = Item(key, value, revision)
        assert followed.recent[revision] == hash_of(revision, list(items.values()))


def test_a_different_key_value_or_revision_is_a_different_hash() -> None:
    base, *others = (
        ("topics/a", b"1", 7),
        ("topics/b", b"1", 7),
        ("topics/a", b"2", 7),
        ("topics/a", b"1", 8),
        ("topics/a1", b"", 7),
    )
    assert len({hash_record(*record) for record in (base, *others)}) == 5


def test_the_order_of_items_does_not_matter() -> None:
    items = [Item(f"topics/{number}", b"x", number) for number in range(1, 20)]
    assert hash_of(20, items) == hash_of(20, items[::-1])


def test_only_the_hashes_of_the_last_commits_are_kept() -> None:
    image_hash = ImageHash(5, {})
    for revision in range(6, 6 + RECENT_COUNT):
        image_hash.replay(revision, {})
    assert list(image_hash.recent) == list(range(6, 6 + RECENT_COUNT))


class HeldWorker(Worker):
    """Calls functions when it is released."""

    def __init__(self) -> None:
        super().__init__("held")
        self.released = threading.Event()

    async def call(self, function: Any, *arguments: Any, **keywords: Any) -> Any:
        await asyncio.to_thread(self.released.wait)
        return function(*arguments, **keywords)


@on_loop
async def test_commits_during_the_hashing_of_a_large_store_are_added_afterwards() -> None:
    items = [Item(f"topics/{number}", b"x", 1) for number in range(HASHED_AT_ONCE_MAX + 1)]
    worker = HeldWorker()
    hasher = ImageHasher(worker)
    await hasher.load(1, items)
    await hasher.replay(2, hash_changes(Commit(2, (StoreChange("topics/0", None),))))
    assert hasher.recent == {}
    worker.released.set()
    while not hasher.recent:
        await asyncio.sleep(0)
    assert hasher.recent == {1: hash_of(1, items), 2: hash_of(2, items[1:])}
    await hasher.stop()
    worker.close()


@on_loop
async def test_many_changes_are_added_in_the_other_thread() -> None:
    items = [Item(f"topics/{number}", b"x", 1) for number in range(HASHED_AT_ONCE_MAX)]
    worker = HeldWorker()
    hasher = ImageHasher(worker)
    await hasher.load(1, items)
    added = tuple(StoreChange(f"topics/new-{number}", b"y") for number in range(HASHED_AT_ONCE_MAX + 1))
    replaying = asyncio.create_task(hasher.replay(2, hash_changes(Commit(2, added))))
    await asyncio.sleep(0)
    assert list(hasher.recent) == [1]
    worker.released.set()
    await replaying
    assert hasher.recent[2] == hash_of(2, items + [Item(key, value, 2) for key, value in added if value])
    worker.close()


@on_loop
async def test_hashing_is_abandoned_by_a_stop() -> None:
    items = [Item(f"topics/{number}", b"x", 1) for number in range(HASHED_AT_ONCE_MAX + 1)]
    worker = HeldWorker()
    hasher = ImageHasher(worker)
    await hasher.load(1, items)
    await hasher.stop()
    worker.released.set()
    assert hasher.recent == {}
    worker.close()


@on_loop
async def test_writers_of_one_store_have_the_same_hashes_also_after_the_history_is_lost() -> None:
    store = MemoryStore()
    one, two = MetadataWriter(store), MetadataWriter(store)
    await one.start()
    await one.write(lambda image: decide_register(image.brokers, broker(1)))
    await two.start()
    await one.write(lambda image: decide_register(image.brokers, broker(2)))
    await two.wait_for_revision(store.revision)
    assert list(one.recent_hashes) == [0, 1, 2]
    assert list(two.recent_hashes) == [1, 2]
    assert one.recent_hashes[2] == two.recent_hashes[2]
    store.write({}, (StoreChange("brokers/1", None),))
    store.lose_history()
    await asyncio.gather(one.wait_for_revision(store.revision), two.wait_for_revision(store.revision))
    assert one.recent_hashes == two.recent_hashes == {3: hash_of(*await store.load())}
    await one.stop()
    await two.stop()
