"""The memory store of the other tests fulfils the contract of the real ones."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from barnabas.metadata.store import Store
from support.memory_store import MemoryStore
from unit.stores.store_contract import StoreContract


class TestMemoryStore(StoreContract):
    def setup_method(self) -> None:
        self.partitions: dict[Path, MemoryStore] = {}

    @asynccontextmanager
    async def opened(self, directory: Path) -> AsyncIterator[Store]:
        yield self.partitions.setdefault(directory, MemoryStore())
