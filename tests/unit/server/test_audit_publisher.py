"""Publishing the audit when something goes wrong on the way."""

from pathlib import Path

import pytest

from barnabas.metadata.audit import Actor
from barnabas.metadata.audit_events import AuditEvent
from barnabas.metadata.configs import TOPIC_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.topics import AUDIT_TOPIC
from barnabas.server import audit_publisher as module
from barnabas.server.audit_publisher import AuditPublisher, last_sequence
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.record import decode_all
from support.loop import on_loop
from support.nodes import RunningNode, running_node
from support.waiting import reached

ALICE = Actor("User:alice", "client", "10.0.0.1", "AlterConfigs")


async def change(running: RunningNode, count: int, start: int = 0) -> None:
    """As many changes, each of another topic."""
    for number in range(start, start + count):
        put = TOPIC_CONFIGS.put(f"t{number}", {"retention.ms": "1"})
        await running.node.metadata.write(lambda image, put=put: Decision(None, (put,)), actor=ALICE)


def published(running: RunningNode) -> list[str]:
    log = running.partition(AUDIT_TOPIC).log
    data = log.read(log.log_start_offset, 1 << 20, log.log_end_offset).data
    return [AuditEvent.from_json(record.value or b"").resource for record in decode_all(data)]


@on_loop
async def test_what_cannot_be_published_now_is_published_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_node(tmp_path, audited=True) as running:
        publisher = AuditPublisher(running.node)
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
async def test_a_publisher_goes_on_behind_the_last_event_that_the_topic_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_BYTES_MAX", 1)
    async with running_node(tmp_path, audited=True) as running:
        await change(running, 3)
        first = AuditPublisher(running.node)
        first._waiting = sorted(
            (running.node.image.audit.revision(row), row, record)
            for row, record in running.node.image.audit.items()
        )
        await first.publish()  # and it ends before it has told the store
        assert len(running.node.image.audit) == 3
        second = AuditPublisher(running.node)
        second.start()
        await change(running, 1, 3)
        await reached(lambda: second.events_count == 1)
        await second.stop()
        assert published(running) == [f"topic/t{number}" for number in range(4)]
        assert last_sequence(
            running.partition(AUDIT_TOPIC)
        ).revision == running.node.image.topic_configs.revision("t3")


@on_loop
async def test_the_store_forgets_what_is_published(tmp_path: Path) -> None:
    async with running_node(tmp_path, audited=True) as running:
        publisher = AuditPublisher(running.node)
        publisher.start()
        await change(running, 5)
        forgotten = {"events_count": 5, "waiting_count": 0, "published_count": 0}
        await reached(lambda: publisher.statistics() == forgotten)
        assert not running.node.image.audit
        await publisher.stop()
