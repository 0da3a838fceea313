"""Publication of the audit by a broker that runs, restarts, and is killed."""

import socket
import sqlite3
import struct
import urllib.request
from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.base.topic_names import AUDIT_TOPIC
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import CreatedTopic, NewTopic
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.metadata.audit.events import AuditEvent, AuditOutcome
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from support.audit import AUDITED, changes, events, published
from support.waiting import until
from support.wire import Wire

#: The option SO_LINGER that resets a connection when it is closed.
RESET = struct.pack("ii", 1, 0)

pytestmark = pytest.mark.kafka_settings(AUDITED)


def set_retention(kafka: EmbeddedBroker, value: int) -> None:
    edits = [AlterConfigOp("retention.ms", OpType.SET, str(value))]
    raise_errors(kafka.client.admin.alter_configs({Resource(ResourceKind.TOPIC, "orders"): edits}).values())


def test_a_change_is_published_with_its_principal(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("orders", partitions=2)
    published(kafka, "topic/orders", "partitions", 2)
    [event] = [each for each in events(kafka) if each.key == "partitions" and each.resource == "topic/orders"]
    assert (event.api, event.principal, event.client_host) == ("CreateTopics", "User:ANONYMOUS", "127.0.0.1")
    assert (event.outcome, event.before, event.after) == (AuditOutcome.CHANGED, None, 2)
    assert event.policy is None


def test_events_are_ordered_by_the_revisions_of_their_changes(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("orders")
    kafka.delete_topic("orders")
    published(kafka, "topic/orders", "partitions", None)
    sequences = [each.sequence for each in events(kafka)]
    assert sequences == sorted(set(sequences))


def stored_records(kafka: EmbeddedBroker) -> int:
    with sqlite3.connect(kafka.directory / "metadata.sqlite") as database:
        (count,) = database.execute("SELECT count(*) FROM items WHERE key LIKE 'audit/%'").fetchone()
    database.close()
    return int(count)


def test_published_audit_records_are_removed_from_the_store(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("orders")
    published(kafka, "topic/orders", "partitions", 1)
    until(lambda: stored_records(kafka) == 0)


@pytest.mark.parametrize("kill", [False, True])
def test_each_change_is_published_once_whenever_the_broker_stops(kafka: EmbeddedBroker, kill: bool) -> None:
    kafka.create_topic("orders")
    for round_number in range(10):
        set_retention(kafka, round_number)
        kafka.restart(kill=kill)
    published(kafka, "topic/orders", "retention.ms", "9")
    found = [each[1:] for each in changes(kafka, "topic/orders") if each[0] == "retention.ms"]
    assert found == [(None, "0"), *((str(number), str(number + 1)) for number in range(9))]


def test_the_audit_topic_is_internal_and_read_only_for_clients(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("orders")
    published(kafka, "topic/orders", "partitions", 1)
    with pytest.raises(Exception, match="INVALID_TOPIC_EXCEPTION"):
        kafka.produce(AUDIT_TOPIC, "forged")
    assert AUDIT_TOPIC not in kafka.topics()


def test_without_the_audit_the_topic_is_not_created() -> None:
    with EmbeddedBroker(settings={"barnabas.audit.enable": "false"}) as kafka:
        kafka.create_topic("orders")
        kafka.restart()
        assert list(kafka.client.admin.describe_topics()) == ["orders"]


def test_a_record_that_is_not_an_event_is_reported() -> None:
    with pytest.raises(ValueError, match="not an audit event"):
        AuditEvent.from_json(b"{}")


def test_an_authorization_error_is_published_once_a_minute(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text("topics:\n  - prefix: orders\n    protected: true\n")
    with EmbeddedBroker(settings={**AUDITED, "barnabas.policy.file": str(rules)}) as kafka:
        kafka.create_topic("orders")
        for _ in range(3):
            with pytest.raises(KafkaError, match="POLICY_VIOLATION"):
                kafka.delete_topic("orders")
        until(lambda: any(each.outcome is AuditOutcome.REFUSED for each in events(kafka)))
        kafka.restart()
        [event] = [each for each in events(kafka) if each.outcome is AuditOutcome.REFUSED]
        passed = {each.policy for each in events(kafka) if each.outcome is AuditOutcome.CHANGED}
    assert (event.resource, event.api, event.error) == ("topic/orders", "DeleteTopics", "POLICY_VIOLATION")
    assert (event.policy, passed) == ("refused", {"passed"})


def test_a_policy_warning_is_published_with_the_change(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text("mode: warn\ntopics:\n  - prefix: orders\n    partitions: {max: 1}\n")
    with EmbeddedBroker(settings={**AUDITED, "barnabas.policy.file": str(rules)}) as kafka:
        kafka.create_topic("orders", partitions=2)
        until(lambda: any(each.outcome is AuditOutcome.WARNED for each in events(kafka)))
        [event] = [each for each in events(kafka) if each.outcome is AuditOutcome.WARNED]
        changed = [each.policy for each in events(kafka) if each.outcome is AuditOutcome.CHANGED]
    assert set(changed) == {"warned"}
    assert (event.resource, event.error) == ("topic/orders", "POLICY_VIOLATION")
    assert "orders" in (event.message or "")


def test_no_policy_warning_is_published_for_a_topic_that_is_only_validated_or_refused(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text(
        "topics:\n  - {name: '[a-z]+'}\n  - {prefix: orders, mode: warn, partitions: {max: 1}}\n"
    )
    with EmbeddedBroker(settings={**AUDITED, "barnabas.policy.file": str(rules)}) as kafka:
        admin = kafka.client.admin
        raise_errors(admin.create_topics([NewTopic("ordersold", 2)], validate_only=True).values())
        [refused, created] = admin.create_topics([NewTopic("orders-1", 2), NewTopic("orders", 2)]).values()
        assert isinstance(refused, KafkaError)
        assert isinstance(created, CreatedTopic)
        until(lambda: any(each.outcome is AuditOutcome.WARNED for each in events(kafka)))
        warned = [each.resource for each in events(kafka) if each.outcome is AuditOutcome.WARNED]
    assert warned == ["topic/orders"]


@pytest.mark.parametrize("mode", ["enforce", "warn"])
def test_a_password_that_violates_a_policy_is_neither_published_nor_returned_nor_logged(
    tmp_path: Path, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text(f"mode: {mode}\nbrokers:\n  - configs: {{sasl.jaas.config: {{forbidden: true}}}}\n")
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="hunter2";'
    with EmbeddedBroker(settings={**AUDITED, "barnabas.policy.file": str(rules)}) as kafka:
        resource = Resource(ResourceKind.BROKER, str(kafka.server.broker.broker_id))
        edits = [AlterConfigOp("sasl.jaas.config", OpType.SET, login)]
        [error] = kafka.client.admin.alter_configs({resource: edits}).values()
        until(lambda: any(each.error == "POLICY_VIOLATION" for each in events(kafka)))
        found = events(kafka)
    assert (error is None) == (mode == "warn")
    texts = [str(error), caplog.text, *(each.to_json().decode() for each in found)]
    assert any("sasl.jaas.config" in text for text in texts)
    assert not any("hunter2" in text for text in texts)


def test_metrics_count_published_and_pending_events() -> None:
    with EmbeddedBroker({**AUDITED, "barnabas.metrics.listener": "127.0.0.1:0"}) as kafka:
        kafka.create_topic("orders")
        published(kafka, "topic/orders", "partitions", 1)
        port = kafka.server.metrics_port
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        found = {
            line.split()[0]: float(line.split()[1]) for line in lines if line.startswith("barnabas_audit")
        }
    assert found["barnabas_audit_events_total"] >= 3
    assert found["barnabas_audit_waiting_records"] == 0


def test_changes_of_a_client_that_does_not_wait_for_the_response_are_audited(kafka: EmbeddedBroker) -> None:
    names = [f"group-{number}" for number in range(300)]
    kafka.create_topic("orders")
    for name in names:
        kafka.client.groups.commit_offsets(name, {TopicPartition("orders", 0): 0})
    with Wire(kafka.port) as wire:
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        wire.send(DeleteGroupsRequest(groups_names=names))
    until(lambda: kafka.client.groups.list() == [])
    deleted = {f"group/{name}" for name in names}
    until(lambda: deleted <= {event.resource for event in events(kafka)})
