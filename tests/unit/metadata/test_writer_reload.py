"""A store that no longer has the commits that a writer has not seen."""

from collections.abc import Callable, Sequence

import pytest

from barnabas.metadata.brokers import BROKERS
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.producer_ids import KEY, decide_allocate_block
from barnabas.metadata.store import Item, StoreChange, StoreError, WentBack
from barnabas.metadata.writer import MetadataWriter
from support.images import broker, register_brokers
from support.loop import in_virtual_time, on_loop
from support.memory_store import MemoryStore
from support.waiting import reached


async def started(store: MemoryStore) -> MetadataWriter:
    writer = MetadataWriter(store)
    await writer.start()
    return writer


@on_loop
async def test_a_writer_that_lost_the_history_loads_the_store_and_shows_the_difference() -> None:
    store = MemoryStore()
    one, two = await started(store), await started(store)
    await register_brokers(one, 1, 2, 3)
    await two.wait_for_revision(store.revision)
    shown: list[tuple[MetadataImage, MetadataImage, Sequence[str]]] = []

    async def listener(before: MetadataImage, after: MetadataImage, changed: ChangedKeys) -> None:
        shown.append((before, after, changed.of(BROKERS)))

    two.listen(listener)
    earlier = two.image
    changed = one.image.brokers["2"]
    removed, replaced = (
        StoreChange("brokers/1", None),
        StoreChange("brokers/2", store.items["brokers/3"].value),
    )
    store.write({}, (removed,))
    store.write({}, (replaced,))
    store.lose_history()
    await two.wait_for_revision(store.revision)

    assert shown == [(earlier, two.image, ["2", "1"])]
    assert two.image == MetadataImage.load(*await store.load())
    assert two.image.brokers["2"] != changed
    assert two.statistics()["reloads_count"] == 1
    await one.write(lambda image: decide_allocate_block(image.producer_ids))
    await two.wait_for_revision(store.revision)
    assert KEY in two.image.producer_ids
    assert one.image == two.image
    await one.stop()
    await two.stop()


class FailingStore(MemoryStore):
    """Fails some loads."""

    failures_count = 0

    async def load(self) -> tuple[int, list[Item]]:
        if self.failures_count:
            self.failures_count -= 1
            raise StoreError("the disk is busy")
        return await super().load()


@in_virtual_time
async def test_a_writer_loads_the_store_again_until_it_can() -> None:
    store = FailingStore()
    writer = await started(store)
    store.write({}, (BROKERS.put("3", broker(3)),))
    store.failures_count = 2
    store.lose_history()
    await writer.wait_for_revision(store.revision)
    assert writer.image == MetadataImage.load(*await store.load())
    await writer.stop()


class RestoredStore(MemoryStore):
    """Knows that it went back."""

    went_back = False

    async def load(self) -> tuple[int, list[Item]]:
        if self.went_back:
            raise WentBack("the store", 9, 1)
        return await super().load()


def known_to_have_gone_back(store: RestoredStore) -> None:
    store.went_back = True


def an_item_is_missing_in_the_image(store: RestoredStore) -> None:
    """The image has seen its deletion."""
    store.items["brokers/2"] = Item("brokers/2", store.items["brokers/1"].value, 2)
    store.write({}, (BROKERS.put("9", broker(9)),))


def an_item_is_older_than_in_the_image(store: RestoredStore) -> None:
    store.items["brokers/1"] = store.items["brokers/1"]._replace(revision=1)
    store.write({}, (BROKERS.put("9", broker(9)),))


def the_revision_is_older_than_the_images(store: RestoredStore) -> None:
    store.revision = 2
    store.items = {key: item for key, item in store.items.items() if item.revision <= 2}


@pytest.mark.parametrize(
    "restore",
    [
        known_to_have_gone_back,
        an_item_is_missing_in_the_image,
        an_item_is_older_than_in_the_image,
        the_revision_is_older_than_the_images,
    ],
)
@on_loop
async def test_a_writer_does_not_follow_a_store_that_does_not_continue_its_image(
    restore: Callable[[RestoredStore], None],
) -> None:
    store = RestoredStore()
    writer = await started(store)
    await register_brokers(writer, 2, 3)
    store.write({}, (StoreChange("brokers/2", None),))
    store.write({}, (BROKERS.put("1", broker(1)),))
    await writer.wait_for_revision(store.revision)
    failures: list[str] = []
    writer.on_failure = lambda: failures.append("failed")
    before = writer.image
    restore(store)
    store.lose_history()
    await reached(lambda: failures == ["failed"])
    assert writer.image is before
    await writer.stop()
