import asyncio
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.source_limiter import SOURCES_MAX, SUMMARY_COUNT_MAX, WINDOW_MS
from barnabas.metadata.acls import decide_create_acls
from barnabas.security import security_log as module
from barnabas.security.sasl.authenticator import LoginEvent, LoginOutcome
from barnabas.security.security_log import (
    LIMITS,
    NAME_CHARACTERS_MAX,
    SecurityLog,
)
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.acls import ALICE, AUTHORIZED, allow
from support.batches import batch
from support.images import new_topic
from support.loop import on_loop
from support.nodes import running_node

Line = dict[str, Any]
LEFT_OUT = "suppressed log lines of logins and denials"


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[Line]:
    """Collect log lines from now on."""
    written: list[Line] = []

    class Recorder:
        def info(self, event: str, **fields: object) -> None:
            written.append({"event": event, **fields})

    monkeypatch.setattr(module, "_log", Recorder())
    return written


def deny(log: SecurityLog, principal: str = ALICE, address: str = "10.0.0.1", resource: str = "t") -> None:
    log.denied(principal, address, AclOperation.READ, ResourceType.TOPIC, resource, "Fetch")


def end_window(log: SecurityLog, clock: ManualClock) -> None:
    clock.advance(WINDOW_MS)
    asyncio.run(log.flush())


def test_a_denial_has_principal_address_operation_and_resource(lines: list[Line]) -> None:
    deny(SecurityLog(ManualClock()))
    assert lines == [
        {
            "event": "authorization denied",
            "principal": ALICE,
            "address": "10.0.0.1",
            "operation": "READ",
            "resource_type": "TOPIC",
            "resource": "t",
            "api": "Fetch",
        }
    ]


def test_a_login_has_user_mechanism_address_and_result(lines: list[Line]) -> None:
    log = SecurityLog(ManualClock())
    log.login(LoginEvent("PLAIN", LoginOutcome.SUCCEEDED, "alice", "", "10.0.0.1", "CLIENTS"))
    log.login(LoginEvent("PLAIN", LoginOutcome.FAILED, "bob", "wrong", "10.0.0.1", "CLIENTS"))
    common = {"mechanism": "PLAIN", "address": "10.0.0.1", "listener": "CLIENTS"}
    assert lines == [
        {"event": "login succeeded", "user": "alice", **common},
        {"event": "login failed", "user": "bob", **common, "why": "wrong"},
    ]


def test_a_principals_events_beyond_the_limit_are_counted_and_logged_at_the_end_of_the_window(
    lines: list[Line],
) -> None:
    clock = ManualClock()
    log = SecurityLog(clock)
    for _ in range(LIMITS.principal + 5):
        deny(log)
    deny(log, "User:bob")
    assert len(lines) == LIMITS.principal + 1
    end_window(log, clock)
    assert lines[-1] == {"event": LEFT_OUT, "count": 5, "principal": ALICE, "address": "10.0.0.1"}
    deny(log)
    assert lines[-1]["event"] == "authorization denied"
    end_window(log, clock)
    assert lines[-1]["event"] == "authorization denied"


def test_random_names_from_one_address_do_not_increase_the_lines(lines: list[Line]) -> None:
    log = SecurityLog(ManualClock())
    for number in range(10 * LIMITS.address):
        deny(log, f"User:{number}")
    assert len(lines) == LIMITS.address


def test_memory_and_lines_are_bounded_for_any_number_of_sources(lines: list[Line]) -> None:
    clock = ManualClock()
    log = SecurityLog(clock)
    total = 5 * SOURCES_MAX
    for number in range(total):
        deny(log, f"User:{number}", f"10.0.{number // 250}.{number % 250}")
    found = log.statistics()
    assert found["written"] == len(lines) <= LIMITS.total
    assert found["sources"] <= SOURCES_MAX + 1
    assert found["left_out"] == total - len(lines)
    written = len(lines)
    end_window(log, clock)
    summary = lines[written:]
    assert len(summary) <= SUMMARY_COUNT_MAX + 1
    assert sum(line["count"] for line in summary) == found["left_out"]
    assert log.statistics() == {"written": 0, "left_out": 0, "sources": 0}


def test_long_names_are_truncated(lines: list[Line]) -> None:
    deny(SecurityLog(ManualClock()), resource="x" * 30_000)
    assert len(lines[0]["resource"]) == NAME_CHARACTERS_MAX + 3


@on_loop
async def test_a_nodes_denials_are_logged_and_allowed_requests_are_not(
    tmp_path: Path, lines: list[Line]
) -> None:
    requests = [
        (DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000), None, "DELETE"),
        (FetchRequest(topics=[FetchTopic("t", partitions=[FetchPartition(0)])], max_bytes=1), 12, "READ"),
        (
            ProduceRequest(
                acks=1,
                timeout_ms=1000,
                topic_data=[
                    TopicProduceData(name="t", partition_data=[PartitionProduceData(0, batch(b"v"))])
                ],
            ),
            12,
            "WRITE",
        ),
    ]
    async with running_node(tmp_path, **AUTHORIZED) as running:
        await running.create(new_topic("t"), new_topic("hidden"))
        acl = allow(AclOperation.DESCRIBE)
        await running.broker.metadata.write(lambda image: decide_create_acls(image.acls, [acl]))
        running.connection.principal = ALICE
        await running.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]))
        await running.ask(MetadataRequest(topics=None))  # lists describable resources: nothing is denied
        assert lines == []
        for request, version, operation in requests:
            await running.ask(request, version)
            found = lines.pop()
            assert (found["operation"], found["resource"], lines) == (operation, "t", [])
            assert (found["principal"], found["address"]) == (ALICE, "client")
