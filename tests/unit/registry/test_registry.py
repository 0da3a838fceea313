"""Decisions of a registry while another one writes."""

from collections.abc import Sequence
from typing import cast

from barnabas.client.core.cluster import ClusterClient
from barnabas.registry.levels import CompatibilityLevel, RegistryMode
from barnabas.registry.records import CompatibilitySetting, ModeSetting, RegistryRecord
from barnabas.registry.registry import SchemaRegistry
from barnabas.registry.schema_log import SchemaLog
from barnabas.registry.settings import decide_level, decide_mode
from barnabas.registry.state import RegistryState
from support.loop import on_loop


class LateLog:
    """A topic with records that are read when its registry becomes the writer."""

    def __init__(self, read: Sequence[RegistryRecord], unread: Sequence[RegistryRecord]) -> None:
        self.state = RegistryState()
        self.appended: list[RegistryRecord] = []
        self._unread = list(unread)
        self._replay(read)

    def _replay(self, records: Sequence[RegistryRecord]) -> None:
        for record in records:
            self.state.replay(record)

    async def become_writer(self) -> None:
        self._replay(self._unread)
        self._unread.clear()

    async def append(self, records: Sequence[RegistryRecord]) -> None:
        self.appended += records
        self._replay(records)


def registry_of(read: RegistryRecord, unread: RegistryRecord) -> tuple[SchemaRegistry, LateLog]:
    log = LateLog([read], [unread])
    return SchemaRegistry(ClusterClient("127.0.0.1:9092"), cast("SchemaLog", log)), log


@on_loop
async def test_a_setting_replaces_one_that_is_not_read_yet() -> None:
    none, full = (CompatibilitySetting("s", CompatibilityLevel[name]) for name in ("NONE", "FULL"))
    registry, log = registry_of(none, full)
    await registry.write(lambda state: decide_level(state, "s", CompatibilityLevel.NONE, None))
    assert log.appended == [none]
    readwrite, readonly = (ModeSetting("s", RegistryMode[name]) for name in ("READWRITE", "READONLY"))
    registry, log = registry_of(readwrite, readonly)
    await registry.write(lambda state: decide_mode(state, "s", RegistryMode.READWRITE, force=False))
    assert log.appended == [readwrite]
