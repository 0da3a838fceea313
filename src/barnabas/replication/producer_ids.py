"""Producer ids for this broker's clients, out of blocks that the cluster hands out."""

import asyncio

from barnabas.metadata.producer_ids import decide_allocate_block
from barnabas.metadata.writer import MetadataWriter
from barnabas.wire.errors import ErrorCode, KafkaError


class ProducerIds:
    """Gives each caller an id that nobody else ever gets."""

    def __init__(self, metadata: MetadataWriter) -> None:
        self._metadata = metadata
        self._block = range(0)
        self._lock = asyncio.Lock()

    async def ready(self) -> None:
        """Wait until there is an id to take: get a new block from the cluster when the last one is used up."""
        while not self._block:
            async with self._lock:
                if not self._block:
                    self._block = await self._metadata.write(
                        lambda image: decide_allocate_block(image.producer_ids)
                    )

    def take(self) -> int:
        """A fresh producer id.

        :raises KafkaError: COORDINATOR_LOAD_IN_PROGRESS when there is none; `ready` changes that.
        """
        if not self._block:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "There is no producer id at hand: try again."
            )
        producer_id, self._block = self._block[0], self._block[1:]
        return producer_id

    async def next(self) -> int:
        """A fresh producer id, when there is one."""
        await self.ready()
        return self.take()
