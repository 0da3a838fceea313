"""Commits that a store does not confirm."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from random import Random

import pytest

from barnabas.metadata.audit.records import AUDIT, Actor, AuditRecord
from barnabas.metadata.decision import Decision
from barnabas.metadata.isr import IsrChange, decide_alter_isr
from barnabas.metadata.producer_ids import KEY, PRODUCER_IDS, decide_allocate_block
from barnabas.metadata.store import NEVER, Commit, OutcomeUnknown, Prefix, StoreChange
from barnabas.metadata.topic_creation import decide_create
from barnabas.metadata.writer import RESEND_S, MetadataWriter
from barnabas.server.audit_publisher import decide_remove_published
from barnabas.wire.errors import ErrorCode, KafkaError
from support.images import RULES, new_topic, register_brokers
from support.loop import in_virtual_time
from support.memory_store import MemoryStore

ALICE = Actor("User:alice", "client", "10.0.0.1", "AllocateProducerIds")


class Silent(MemoryStore):
    """Does not answer the next commits; the first of them is made or not."""

    def __init__(self, *, commits: bool, silent_count: int = 1) -> None:
        super().__init__()
        self.write({}, (PRODUCER_IDS.put(KEY, 0),))
        self._commits_silently = commits
        self.silent_left = silent_count
        self.sent_count = 0
        self._watch_delay_s = 0.0

    async def commit(
        self, reads: Mapping[str, int], changes: tuple[StoreChange, ...], commit_id: str = ""
    ) -> int:
        self.sent_count += 1
        if self.silent_left == 0:
            return await super().commit(reads, changes, commit_id)
        self.silent_left -= 1
        if self._commits_silently and self.sent_count == 1:
            await super().commit(reads, changes, commit_id)
        raise OutcomeUnknown("no answer")

    def delay_watches(self, delay_s: float) -> None:
        """Show each commit so much later."""
        self._watch_delay_s = delay_s

    async def watch(self, revision: int) -> AsyncIterator[Commit]:
        async for commit in super().watch(revision):
            await asyncio.sleep(self._watch_delay_s)
            yield commit


async def allocate(writer: MetadataWriter, actor: Actor | None = None) -> int:
    block = await writer.write(lambda image: decide_allocate_block(image.producer_ids), actor=actor)
    return block.start


@in_virtual_time
async def test_a_commit_that_the_store_does_not_confirm_succeeds_when_the_watch_shows_it() -> None:
    store = Silent(commits=True)
    writer = MetadataWriter(store, writer_id="w")
    await writer.start()
    assert await allocate(writer, ALICE) == 0
    assert (store.revision, store.sent_count) == (2, 1)
    assert writer.statistics()["unknown_outcomes_count"] == 1
    await writer.stop()


@in_virtual_time
@pytest.mark.parametrize("actor", [ALICE, None])
async def test_a_lost_commit_is_sent_again_soon(actor: Actor | None) -> None:
    store = Silent(commits=False, silent_count=3)
    writer = MetadataWriter(store, writer_id="w")
    await writer.start()
    started_s = asyncio.get_running_loop().time()
    assert await allocate(writer, actor) == 0
    assert asyncio.get_running_loop().time() - started_s == pytest.approx(3 * RESEND_S)
    assert store.revision == 2
    await writer.stop()


@in_virtual_time
@pytest.mark.parametrize("actor", [ALICE, None])
async def test_a_commit_that_the_watch_shows_late_is_sent_again_and_made_once(actor: Actor | None) -> None:
    store = Silent(commits=True)
    store.delay_watches(2 * RESEND_S)
    writer = MetadataWriter(store, writer_id="w")
    await writer.start()
    assert await allocate(writer, actor) == 0
    assert (store.revision, store.sent_count) == (2, 2)
    await writer.stop()


@in_virtual_time
async def test_a_lost_commit_that_conflicts_later_is_decided_again() -> None:
    store = Silent(commits=False)
    writer, other = MetadataWriter(store, writer_id="w"), MetadataWriter(store, writer_id="other")
    await writer.start()
    await other.start()
    pending = asyncio.create_task(allocate(writer, ALICE))
    await asyncio.sleep(RESEND_S / 2)
    first = await allocate(other)
    assert await pending > first == 0
    await writer.stop()
    await other.stop()


class Forgetful(Silent):
    """Does not answer the first commit, which is made; its watch begins again without showing it."""

    async def commit(
        self, reads: Mapping[str, int], changes: tuple[StoreChange, ...], commit_id: str = ""
    ) -> int:
        try:
            return await super().commit(reads, changes, commit_id)
        except OutcomeUnknown:
            self.lose_history()
            await asyncio.sleep(RESEND_S)
            raise


@in_virtual_time
async def test_a_commit_that_may_be_among_those_that_the_watch_has_lost_is_not_decided_again() -> None:
    store = Forgetful(commits=True)
    writer = MetadataWriter(store, writer_id="w")
    await writer.start()
    with pytest.raises(KafkaError, match="did not confirm the change"):
        await allocate(writer, ALICE)
    assert writer.statistics()["reloads_count"] == 1
    assert writer.image.producer_ids[KEY] == 1000
    await writer.stop()


@in_virtual_time
async def test_a_change_whose_outcome_is_not_found_times_out_for_clients() -> None:
    store = Silent(commits=False, silent_count=1_000)
    writer = MetadataWriter(store)
    await writer.start()
    with pytest.raises(KafkaError, match="did not confirm the change") as refused:
        await allocate(writer, ALICE)
    assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT
    await writer.stop()


@in_virtual_time
async def test_a_first_election_that_the_store_loses_is_sent_again_soon() -> None:
    store = Silent(commits=False)
    store.silent_left = 0
    writer = MetadataWriter(store, writer_id="w")
    await writer.start()
    await register_brokers(writer, 1, 2)
    await writer.write(
        lambda image: decide_create(
            image, [new_topic("t", replication_factor=2)], RULES, Random(1), validate_only=False
        )
    )
    topic = writer.image.topics["t"]
    leader, follower = topic.assignments[0]
    change = IsrChange(topic.topic_id, 0, 0, 0, (leader,), {})
    started_s = asyncio.get_running_loop().time()
    store.silent_left = 1
    assert await writer.write(lambda image: decide_alter_isr(image, leader, [change])) == 1
    assert asyncio.get_running_loop().time() - started_s == pytest.approx(RESEND_S)
    assert follower not in writer.image.partition(topic, 0).isr
    await writer.stop()


@in_virtual_time
async def test_a_removal_of_published_audit_records_is_sent_again_soon() -> None:
    store = Silent(commits=False)
    store.write({}, (AUDIT.put("9", AuditRecord(1, ALICE)),))
    writer = MetadataWriter(store)
    await writer.start()
    started_s = asyncio.get_running_loop().time()
    assert await writer.write(lambda image: decide_remove_published(image, ["9"])) == ["9"]
    assert asyncio.get_running_loop().time() - started_s == pytest.approx(RESEND_S)
    assert not writer.image.audit
    await writer.stop()


@in_virtual_time
@pytest.mark.parametrize(
    ("change", "reads"),
    [
        (StoreChange("key", b"written"), {}),
        (StoreChange("key", None), {"key": NEVER}),
        (StoreChange("key", b"created"), {"key": NEVER}),
        (StoreChange(Prefix("k"), None), {Prefix("k"): 7}),
    ],
    ids=["blind", "removes nothing", "a creation", "a prefix"],
)
async def test_a_change_that_could_be_made_twice_is_not_sent_again(
    change: StoreChange, reads: dict[str, int]
) -> None:
    store = Silent(commits=False)
    writer = MetadataWriter(store)
    await writer.start()
    with pytest.raises(KafkaError, match="did not confirm the change"):
        await writer.write(lambda image: Decision(None, (change,), reads), actor=ALICE)
    assert store.sent_count == 1
    await writer.stop()
