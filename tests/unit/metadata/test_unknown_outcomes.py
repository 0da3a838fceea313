"""Commits that a store does not confirm."""

from collections.abc import Mapping

import pytest

from barnabas.metadata.audit.records import Actor
from barnabas.metadata.producer_ids import decide_allocate_block
from barnabas.metadata.store import OutcomeUnknown, StoreChange
from barnabas.metadata.writer import MetadataWriter
from barnabas.wire.errors import ErrorCode, KafkaError
from support.loop import on_loop
from support.memory_store import MemoryStore

ALICE = Actor("User:alice", "client", "10.0.0.1", "AllocateProducerIds")


class Silent(MemoryStore):
    """Does not answer the next commit, which it makes or not."""

    def __init__(self, *, commits: bool) -> None:
        super().__init__()
        self._commits_silently = commits
        self.is_silent = True

    async def commit(
        self, reads: Mapping[str, int], changes: tuple[StoreChange, ...], commit_id: str = ""
    ) -> int:
        is_silent, self.is_silent = self.is_silent, False
        if not is_silent:
            return await super().commit(reads, changes, commit_id)
        if self._commits_silently:
            await super().commit(reads, changes, commit_id)
        raise OutcomeUnknown("no answer")


@on_loop
async def test_a_commit_that_the_store_does_not_confirm_succeeds_when_the_watch_shows_it() -> None:
    store = Silent(commits=True)
    writer = MetadataWriter(store, writer_id="w")
    await writer.start()
    block = await writer.write(lambda image: decide_allocate_block(image.producer_ids), actor=ALICE)
    assert block.start == 0
    assert store.revision == 1
    assert writer.statistics()["unknown_outcomes_count"] == 1
    await writer.stop()


@on_loop
async def test_a_change_that_the_watch_does_not_show_times_out_for_clients() -> None:
    writer = MetadataWriter(Silent(commits=False))
    await writer.start()
    with pytest.raises(KafkaError, match="unknown whether the change is made") as refused:
        await writer.write(lambda image: decide_allocate_block(image.producer_ids), actor=ALICE)
    assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT
    await writer.stop()


@on_loop
async def test_a_change_of_the_broker_itself_that_the_watch_does_not_show_is_decided_again() -> None:
    store = Silent(commits=False)
    writer = MetadataWriter(store)
    await writer.start()
    await writer.write(lambda image: decide_allocate_block(image.producer_ids))
    assert store.revision == 1
    await writer.stop()
