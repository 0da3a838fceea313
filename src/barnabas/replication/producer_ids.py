"""Producer ids for this broker's clients, from blocks that the cluster allocates."""

import asyncio

from barnabas.metadata.producer_ids import decide_allocate_block
from barnabas.metadata.writer import MetadataWriter
from barnabas.wire.errors import ErrorCode, KafkaError


class ProducerIds:
    """Returns a unique id to each caller."""

    def __init__(self, metadata: MetadataWriter) -> None:
        self._metadata = metadata
        self._block = range(0)
        self._lock = asyncio.Lock()

    async def ready(self) -> None:
        """Wait until an id is available: allocate a new block from the cluster when the last one is used up."""
        while not self._block:
            async with self._lock:
                if not self._block:
                    self._block = await self._metadata.write(
                        lambda image: decide_allocate_block(image.producer_ids)
                    )

    def take(self) -> int:
        """Return a new producer id.

        :raises KafkaError: COORDINATOR_LOAD_IN_PROGRESS when none is available; call `ready` first.
        """
        if not self._block:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "No producer id is available yet; retry later."
            )
        producer_id, self._block = self._block[0], self._block[1:]
        return producer_id

    async def next(self) -> int:
        """Return a new producer id, waiting for one if needed."""
        await self.ready()
        return self.take()
