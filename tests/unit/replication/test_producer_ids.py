import asyncio

from barnabas.metadata.writer import MetadataWriter
from barnabas.replication.producer_ids import ProducerIds
from support.loop import on_loop
from support.memory_store import MemoryStore


@on_loop
async def test_ids_are_consecutive_across_blocks() -> None:
    store = MemoryStore()
    metadata = MetadataWriter(store)
    await metadata.start()
    ids = ProducerIds(metadata)
    assert [await ids.next() for _ in range(1001)] == list(range(1001))
    assert store.revision == 2
    await metadata.stop()


@on_loop
async def test_ids_are_unique_across_brokers() -> None:
    store = MemoryStore()
    brokers = [MetadataWriter(store) for _ in range(3)]
    for metadata in brokers:
        await metadata.start()
    sources = [ProducerIds(metadata) for metadata in brokers]
    given = await asyncio.gather(*(source.next() for _ in range(500) for source in sources))
    assert len(set(given)) == 1500
    assert store.revision == 3
    for metadata in brokers:
        await metadata.stop()


@on_loop
async def test_a_restarted_broker_does_not_continue_its_old_block() -> None:
    metadata = MetadataWriter(MemoryStore())
    await metadata.start()
    assert await ProducerIds(metadata).next() == 0
    assert await ProducerIds(metadata).next() == 1000
    await metadata.stop()


@on_loop
async def test_a_cancelled_request_does_not_block_others() -> None:
    metadata = MetadataWriter(MemoryStore())
    await metadata.start()
    ids = ProducerIds(metadata)
    asking = [asyncio.create_task(ids.next()) for _ in range(3)]
    await asyncio.sleep(0)
    asking[0].cancel()
    results = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    numbers = [result for result in results[1:] if isinstance(result, int)]
    assert len(set(numbers)) == 2
    await metadata.stop()
