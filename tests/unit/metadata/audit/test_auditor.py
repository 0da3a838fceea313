"""Audit records, in the transactions of the changes."""

import random

from barnabas.base.clock import ManualClock
from barnabas.metadata.audit.auditor import Auditor
from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.audit.records import AUDIT, Actor, AuditRecord
from barnabas.metadata.configs import TOPIC_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.producer_ids import PRODUCER_IDS
from barnabas.metadata.store import StoreChange
from barnabas.metadata.writer import MetadataWriter
from support.loop import on_loop
from support.memory_store import MemoryStore

ALICE = Actor("User:alice", "client", "10.0.0.1", "AlterConfigs")
NOW_MS = 1_700_000_000_000


def auditor() -> Auditor:
    return Auditor(ManualClock(NOW_MS), random.Random(1))


def retention(value: str) -> StoreChange:
    return TOPIC_CONFIGS.put("orders", {"retention.ms": value})


@on_loop
async def test_an_actors_change_is_stored_with_its_audit_record() -> None:
    store = MemoryStore()
    writer = MetadataWriter(store, auditor())
    await writer.start()
    await writer.write(lambda image: Decision(None, (retention("1"),)), actor=ALICE)
    [(row, record)] = writer.image.audit.items()
    assert record == AuditRecord(NOW_MS, ALICE, (Difference("topic/orders", "retention.ms", None, "1"),))
    assert writer.image.audit.revision(row) == writer.image.topic_configs.revision("orders")
    await writer.stop()


@on_loop
async def test_a_brokers_own_change_has_no_audit_record() -> None:
    writer = MetadataWriter(MemoryStore(), auditor())
    await writer.start()
    await writer.write(lambda image: Decision(None, (retention("1"),)))
    assert not writer.image.audit
    await writer.stop()


@on_loop
async def test_nothing_is_recorded_without_an_auditor() -> None:
    writer = MetadataWriter(MemoryStore())
    await writer.start()
    await writer.write(lambda image: Decision(None, (retention("1"),)), actor=ALICE)
    assert not writer.image.audit
    await writer.stop()


@on_loop
async def test_the_previous_value_is_the_replaced_one() -> None:
    store = MemoryStore()
    mine = MetadataWriter(store, auditor())
    await mine.start()
    raced = False

    def decide(image: MetadataImage) -> Decision[None]:
        nonlocal raced
        if not raced:
            raced = True
            store.write({}, (retention("2"),))
        return Decision(None, (retention("3"),))

    await mine.write(decide, actor=ALICE)
    [record] = mine.image.audit.values()
    assert record.differences == (Difference("topic/orders", "retention.ms", "2", "3"),)
    await mine.stop()


def test_a_change_without_visible_effect_has_no_audit_record() -> None:
    decision = Decision(None, (PRODUCER_IDS.put("next", 7),))
    assert auditor().with_audit_record(MetadataImage(), decision, ALICE) is decision


def test_an_audit_record_round_trips_through_the_store() -> None:
    record = AuditRecord(NOW_MS, ALICE, (Difference("topic/orders", "partitions", None, 3),))
    assert AUDIT.decode(AUDIT.put("x", record).value or b"") == record
