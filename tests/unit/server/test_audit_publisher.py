"""Publication of the audit under failures."""

import asyncio
import errno
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.api.topics.topic_creator import create_internal_topic
from barnabas.base.topic_names import AUDIT_TOPIC
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata import writer
from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.audit.events import AuditEvent, AuditOutcome, events_of
from barnabas.metadata.audit.records import AUDIT, Actor, AuditRecord, Refusal
from barnabas.metadata.configs import TOPIC_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.topics import PartitionRegistration
from barnabas.server import audit_publisher as module
from barnabas.server.audit_publisher import AuditPublisher, last_event
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.key_value_batch import encode_pairs
from barnabas.wire.records.record import decode_all
from support.loop import on_loop
from support.memory_store import MemoryStore
from support.nodes import RunningNode, running_node
from support.waiting import reached

ALICE = Actor("User:alice", "client", "10.0.0.1", "AlterConfigs")


async def change(running: RunningNode, count: int, start: int = 0) -> None:
    """Make this many changes, each of another topic."""
    for number in range(start, start + count):
        put = TOPIC_CONFIGS.put(f"t{number}", {"retention.ms": "1"})
        await running.broker.metadata.write(lambda image, put=put: Decision(None, (put,)), actor=ALICE)


def events(running: RunningNode) -> list[AuditEvent]:
    log = running.partition(AUDIT_TOPIC).log
    data = log.read(log.log_start_offset, 1 << 24, log.log_end_offset).data
    return [AuditEvent.from_json(record.value or b"") for record in decode_all(data)]


def published(running: RunningNode) -> list[str]:
    return [event.resource for event in events(running)]


@on_loop
async def test_events_that_cannot_be_published_now_are_published_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_node(tmp_path, audited=True) as running:
        publisher = AuditPublisher(running.broker)
        publisher.start()
        await change(running, 1)
        await reached(lambda: publisher.events_count == 1)
        partition = running.partition(AUDIT_TOPIC)
        append = partition.append_as_coordinator
        calls = 0

        def failing(*arguments: object) -> object:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "not now")
            return append(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(partition, "append_as_coordinator", failing)
        await change(running, 2, 1)
        await reached(lambda: publisher.events_count == 3)
        await publisher.stop()
        assert published(running) == ["topic/t0", "topic/t1", "topic/t2"]


@on_loop
async def test_a_publisher_continues_after_the_last_event_in_the_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_BYTES_MAX", 1)
    async with running_node(tmp_path, audited=True) as running:
        await change(running, 3)
        first = AuditPublisher(running.broker)
        first._waiting = sorted(
            (running.broker.image.audit.revision(row), row, record)
            for row, record in running.broker.image.audit.items()
        )
        await first.publish()  # and it stops before it has updated the store
        assert len(running.broker.image.audit) == 3
        second = AuditPublisher(running.broker)
        second.start()
        await change(running, 1, 3)
        await reached(lambda: second.events_count == 1)
        await second.stop()
        assert published(running) == [f"topic/t{number}" for number in range(4)]
        last = last_event(running.partition(AUDIT_TOPIC))
        assert last is not None
        assert last.revision == running.broker.image.topic_configs.revision("t3")


@on_loop
async def test_events_have_the_revisions_of_their_commits_after_the_metadata_were_loaded_again(
    tmp_path: Path,
) -> None:
    store = MemoryStore()
    async with running_node(tmp_path, store, audited=True) as running:
        publisher = AuditPublisher(running.broker)
        publisher.start()
        await change(running, 1)
        await reached(lambda: publisher.events_count == 1)
        for number in (1, 2):  # by another broker
            difference = Difference(f"topic/t{number}", "retention.ms", None, "1")
            record = AuditRecord(number, ALICE, differences=(difference,))
            store.write({}, (AUDIT.put(f"{9 - number}", record),))
        store.lose_history()
        await reached(lambda: publisher.events_count == 3)
        await publisher.stop()
        revisions = [event.revision for event in events(running)]
        assert revisions == sorted(set(revisions)), revisions


@on_loop
async def test_a_new_leader_knows_the_records_that_the_former_one_has_published_before_it_continues(
    tmp_path: Path,
) -> None:
    store = MemoryStore()
    async with running_node(tmp_path, store, audited=True) as running:
        await create_internal_topic(running.broker, AUDIT_TOPIC)
        await change(running, 1)
        [(row, first)] = running.broker.image.audit.items()
        second = AuditRecord(1, ALICE, differences=(Difference("topic/t1", "retention.ms", None, "1"),))
        revision = store.write({}, (AUDIT.put("9", second),))
        for each, record in ((running.broker.image.audit.revision(row), first), (revision, second)):
            [event] = events_of(each, record)
            batch = encode_pairs([(event.resource.encode(), event.to_json())], event.time)
            running.partition(AUDIT_TOPIC).append_as_coordinator(memoryview(bytearray(batch)))
        assert running.broker.image.revision < revision
        publisher = AuditPublisher(running.broker)
        await publisher.publish()
        await running.broker.metadata.wait_for_revision(revision)
        await publisher.publish()
        assert published(running) == ["topic/t0", "topic/t1"]


@on_loop
async def test_events_are_not_appended_in_another_leader_epoch_than_they_were_chosen_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_node(tmp_path, audited=True) as running:
        await change(running, 2)
        await create_internal_topic(running.broker, AUDIT_TOPIC)
        partition = running.partition(AUDIT_TOPIC)
        first, other = AuditPublisher(running.broker), AuditPublisher(running.broker)
        call = running.broker.worker.call

        async def call_late(function: Any, *arguments: Any) -> Any:
            monkeypatch.undo()
            partition.update_state(PartitionRegistration(1, partition.leader_epoch + 1, (1,), 1, (1,)))
            await other.publish()
            return await call(function, *arguments)

        monkeypatch.setattr(running.broker.worker, "call", call_late)
        await first.publish()
        await first.publish()
        assert published(running) == ["topic/t0", "topic/t1"]


@on_loop
async def test_published_records_are_removed_from_the_store(tmp_path: Path) -> None:
    async with running_node(tmp_path, audited=True) as running:
        publisher = AuditPublisher(running.broker)
        publisher.start()
        await change(running, 5)
        forgotten = {"events_count": 5, "waiting_count": 0, "published_count": 0}
        await reached(lambda: publisher.statistics() == forgotten)
        assert not running.broker.image.audit
        await publisher.stop()


@on_loop
async def test_published_records_are_removed_in_parts_if_the_store_allows_only_small_commits(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, audited=True) as running:
        await change(running, 20)
        running.store.changes_max = 6
        publisher = AuditPublisher(running.broker)
        publisher.start()
        await reached(lambda: publisher.statistics()["events_count"] == 20 and not running.broker.image.audit)
        await publisher.stop()


@on_loop
async def test_a_disk_failure_is_reported_once_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "REST_MS", 1)
    async with running_node(tmp_path, audited=True) as running:
        publisher = AuditPublisher(running.broker)
        publisher.start()
        await change(running, 1)
        await reached(lambda: publisher.events_count == 1)
        attempts = 0

        async def failing(log: PartitionLog) -> None:
            nonlocal attempts
            attempts += 1
            raise OSError(errno.EIO, "the disk has failed")

        monkeypatch.setattr(running.broker.flusher, "when_flushed", failing)
        await reached(lambda: attempts >= 3)
        await publisher.stop()
        lines = capsys.readouterr().err.splitlines()
        assert [line for line in lines if "barnabas.audit" in line] == lines
        assert len(lines) == 1
        assert "cannot publish audit records; they stay in the store" in lines[0]
        assert "the disk has failed" in lines[0]


@on_loop
async def test_an_event_that_is_too_large_for_the_topic_is_truncated(tmp_path: Path) -> None:
    async with running_node(tmp_path, audited=True) as running:
        publisher = AuditPublisher(running.broker)
        publisher.start()
        put = TOPIC_CONFIGS.put("t", {"retention.ms": "1", "x": "9" * (2 << 20)})
        await running.broker.metadata.write(lambda image: Decision(None, (put,)), actor=ALICE)
        await change(running, 1)
        await reached(lambda: publisher.events_count == 3)
        await publisher.stop()
        _, large, after = events(running)
        assert (large.key, large.before, after.resource) == ("x", None, "topic/t0")
        assert large.after == "9" * 200 + "... (2097152 characters)"


@on_loop
async def test_batches_are_limited_by_the_topics_maximum(tmp_path: Path) -> None:
    async with running_node(tmp_path, audited=True) as running:
        publisher = AuditPublisher(running.broker)
        publisher.start()
        await change(running, 1)
        await reached(lambda: publisher.events_count == 1)
        log = running.partition(AUDIT_TOPIC).log
        log.config = replace(log.config, max_message_bytes=600)
        configs = {f"t{number}": {"retention.ms": "2", "segment.ms": "3"} for number in range(20)}
        puts = tuple(TOPIC_CONFIGS.put(*each) for each in configs.items())
        await running.broker.metadata.write(lambda image: Decision(None, puts), actor=ALICE)
        await reached(lambda: publisher.events_count == 41)
        await publisher.stop()
        assert len(events(running)) == 41


@pytest.mark.parametrize("found", ["an event of another store", "no event"])
def test_other_records_at_the_end_of_the_topic_do_not_block_publication(tmp_path: Path, found: str) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, audited=True) as running:
            publisher = AuditPublisher(running.broker)
            other = AuditEvent(
                10**6, 0, 1, "User:eve", None, "", "CreateTopics", AuditOutcome.CHANGED, "topic/x"
            )
            value = other.to_json() if found != "no event" else b"[1]"
            partition = await publisher._partition()
            partition.append_as_coordinator(memoryview(encode_pairs([(b"topic/x", value)], 1)))
            publisher.start()
            await change(running, 2)
            await reached(lambda: publisher.events_count == 2)
            await publisher.stop()

    scenario()


@on_loop
async def test_authorization_errors_are_not_audited_while_too_many_events_are_pending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "WAITING_COUNT_MAX", 3)
    async with running_node(tmp_path, audited=True) as running:
        for number in range(5):
            refusal = Refusal(f"topic/t{number}", "TOPIC_AUTHORIZATION_FAILED", "no")
            await running.broker.metadata.record_events(ALICE, [refusal])
        assert len(running.broker.image.audit) == 3
        await change(running, 2)
        assert len(running.broker.image.audit) == 5


@on_loop
async def test_records_stay_in_the_store_until_the_in_sync_replicas_have_their_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REPLICATION_MS", 10)
    async with running_node(tmp_path, audited=True) as running:
        publisher = AuditPublisher(running.broker)
        publisher.start()
        await change(running, 1)
        await reached(lambda: not running.broker.image.audit)
        partition = running.partition(AUDIT_TOPIC)
        partition.update_state(PartitionRegistration(1, partition.leader_epoch, (1, 2), 1, replicas=(1, 2)))
        await change(running, 1, start=1)
        await reached(lambda: publisher._last_failure != "")
        assert len(running.broker.image.audit) == 1
        partition.update_follower(2, 0, 0, partition.log.log_end_offset)
        await reached(lambda: not running.broker.image.audit)
        await publisher.stop()


@on_loop
async def test_a_stop_does_not_wait_for_a_store_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STOP_S", 0.01)
    async with running_node(tmp_path, audited=True) as running:
        publisher = AuditPublisher(running.broker)
        publisher.start()
        await change(running, 1)
        await reached(lambda: publisher.events_count == 1)
        store = running.broker.metadata._store
        assert isinstance(store, MemoryStore)
        store.hold()
        await asyncio.wait_for(publisher.stop(), 10)
        store.release()
