"""A store that no longer has the commits that a writer has not seen."""

from collections.abc import Sequence

from barnabas.metadata.brokers import BROKERS
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.producer_ids import KEY, decide_allocate_block
from barnabas.metadata.store import Item, StoreChange, StoreError
from barnabas.metadata.writer import MetadataWriter
from support.images import broker, register_brokers
from support.loop import in_virtual_time, on_loop
from support.memory_store import MemoryStore


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
