"""Producer ids for this broker's clients, out of blocks that the cluster hands out."""

import asyncio
from collections.abc import Iterator

from barnabas.metadata.producer_ids import decide_allocate_block
from barnabas.metadata.writer import MetadataWriter


class ProducerIds:
    """Gives each caller an id that nobody else ever gets."""

    def __init__(self, metadata: MetadataWriter) -> None:
        self._metadata = metadata
        self._block: Iterator[int] = iter(())
        self._lock = asyncio.Lock()

    async def next(self) -> int:
        """A fresh producer id; takes a new block from the cluster when the last one is used up."""
        async with self._lock:
            producer_id = next(self._block, None)
            if producer_id is None:
                block = await self._metadata.write(lambda image: decide_allocate_block(image.producer_ids))
                self._block = iter(block)
                producer_id = next(self._block)
            return producer_id
