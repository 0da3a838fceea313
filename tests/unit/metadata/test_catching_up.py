"""A writer catches up with what other writers have committed, before it decides."""

import asyncio

import pytest

from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.metadata.configs import AlterationRules, ConfigAlteration, decide_alter
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.wire.errors import ErrorCode, KafkaError
from support.loop import in_virtual_time, on_loop, turns
from support.memory_store import MemoryStore, UnreliableStore
from unit.metadata.test_writer import create, writers

#: Every config is valid.
NO_RULES = AlterationRules(lambda resource, key: None, lambda resource, existing, requested: None)


@on_loop
async def test_a_writer_that_has_caught_up_knows_what_others_have_committed() -> None:
    async with writers(MemoryStore(), 2) as [one, two]:
        for name in ("a", "b", "c"):
            await create(one, name)
            await two.catch_up()
            assert name in two.image.topics
        assert two.statistics()["latest_revision_reads_count"] == 3


@on_loop
async def test_a_store_that_cannot_be_read_is_an_error_for_who_must_catch_up() -> None:
    store = UnreliableStore()
    async with writers(store) as [writer]:
        store.is_available = False
        with pytest.raises(KafkaError, match="Cannot read the metadata store: the disk is full") as raised:
            await writer.catch_up()
        assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
        store.is_available = True
        await writer.catch_up()


@on_loop
async def test_a_store_of_one_process_is_not_read_before_each_request() -> None:
    store = MemoryStore()
    store.is_shared = False
    async with writers(store) as [writer]:
        await writer.catch_up()
        assert writer.statistics()["latest_revision_reads_count"] == 0


class SilentStore(MemoryStore):
    """Does not answer who asks for its revision."""

    async def latest_revision(self) -> int:
        await asyncio.Event().wait()
        return 0


@in_virtual_time
async def test_a_request_waits_for_the_latest_metadata_no_longer_than_its_timeout() -> None:
    async with writers(SilentStore()) as [writer]:
        with pytest.raises(KafkaError, match="not read within 500 ms; nothing was changed") as raised:
            await writer.catch_up(500)
        assert raised.value.code is ErrorCode.REQUEST_TIMED_OUT
        await turns()
        assert writer.statistics()["requests_with_timeout_count"] == 0
        await writer.catch_up(0)  # the change itself refuses this timeout


@on_loop
async def test_a_topic_is_not_deleted_without_configs_that_it_got_meanwhile() -> None:
    retention = AlterConfigOp("retention.ms", OpType.SET, "1")
    alteration = ConfigAlteration(Resource(ResourceKind.TOPIC, "a"), [retention], replaces=False)
    async with writers(MemoryStore(), 2) as [one, two]:
        await create(one, "a")
        await two.catch_up()
        altered, deleted = await asyncio.gather(
            one.write(lambda image: decide_alter(image, [alteration], NO_RULES, validate_only=False)),
            two.write(lambda image: decide_delete(image, [TopicToDelete("a")])),
        )
        assert [altered[0].error, deleted[0].error] == [None, None]
        assert dict(two.image.topic_configs) == {}
