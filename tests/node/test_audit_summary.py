"""The audit summary: its results follow from the events, constructed ones and those of a broker."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from barnabas.cli.main import app
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.metadata.audit.events import AuditEvent, AuditOutcome
from barnabas.reports.audit.analysis import NOT_AUDITED, UNCHANGED, UNUSED, USED, DriftCount
from barnabas.reports.audit.events import AuditError
from barnabas.reports.audit.html import audit_html
from barnabas.reports.audit.summary import Audited, analysed, audit
from barnabas.reports.audit.tallies import RefusedChange, Setting
from barnabas.testing import EmbeddedBroker
from barnabas.wire.acls import AclBinding, AclOperation, PatternType
from barnabas.wire.errors import KafkaError
from support.acls import allow, allow_cluster, deny
from support.audit import AUDITED, events
from support.waiting import until

DAY_MS = 86_400_000
BEGIN_MS = 1_767_225_600_000  # 2026-01-01
SETS, CREATES, MAKES_ACLS = "IncrementalAlterConfigs", "CreateTopics", "CreateAcls"


class Events:
    """A sequence of events, each of its own request."""

    def __init__(self) -> None:
        self.events: list[AuditEvent] = []

    def add_event(self, day: int, principal: str, api: str, resource: str, **fields: Any) -> None:
        revision = len(self.events) + 1
        who = (BEGIN_MS + day * DAY_MS + revision, f"User:{principal}", "client", "10.0.0.1", api)
        self.events.append(
            AuditEvent(revision, 0, *who, **{"outcome": AuditOutcome.CHANGED, **fields}, resource=resource)
        )

    def set(self, day: int, principal: str, topic: str, before: str | None, after: str | None) -> None:
        self.add_event(day, principal, SETS, f"topic/{topic}", key="retention.ms", before=before, after=after)

    def grant(self, day: int, binding: AclBinding, *, gone: bool = False) -> None:
        values = {"before": list(binding)} if gone else {"after": list(binding)}
        key = (
            f"acl {binding.principal} {binding.permission.name} {binding.operation.name} from {binding.host}"
        )
        api = "DeleteAcls" if gone else MAKES_ACLS
        self.add_event(day, "root", api, f"topic/{binding.resource_name}", key=key, **values)

    def refuse(self, day: int, principal: str, api: str, resource: str, error: str) -> None:
        self.add_event(
            day, principal, api, resource, outcome=AuditOutcome.REFUSED, error=error, message="because"
        )

    def batches(self) -> list[pa.RecordBatch]:
        values = [each.to_json() for each in reversed(self.events)]
        return [pa.RecordBatch.from_pydict({"offset": range(len(values)), "value": values})]


def uses(found: Audited, bindings: Sequence[AclBinding]) -> list[tuple[int, str]]:
    by_binding = {each.grant.binding: each for each in found.grants}
    return [(by_binding[each].uses_count, by_binding[each].status) for each in bindings]


def test_config_drift_and_its_principals_are_reported() -> None:
    story = Events()
    story.set(0, "alice", "orders", None, "1")
    story.set(0, "bob", "orders", "1", "2")
    story.set(1, "alice", "orders", "2", None)
    story.set(2, "bob", "clicks", "7", "9")
    story.add_event(2, "bob", CREATES, "topic/new", key="partitions", after=3)
    story.add_event(2, "bob", CREATES, "topic/new", key="partition 0 leader", after=1)
    found = analysed(story.batches(), None)
    assert found.events_count == 6
    by_principal = {(each.resource, each.principal): each for each in found.configs}
    assert {tp: each.changes_count for tp, each in by_principal.items()} == {
        ("topic/orders", "User:alice"): 2,
        ("topic/orders", "User:bob"): 1,
        ("topic/clicks", "User:bob"): 1,
    }
    last = by_principal["topic/orders", "User:alice"]
    assert (last.last_before, last.last_after) == ("2", None)
    assert found.settings == (
        Setting("topic/orders", "retention.ms", None, None, 3, "User:alice, User:bob", last.last_time, True),
        Setting("topic/clicks", "retention.ms", "7", "9", 1, "User:bob", BEGIN_MS + 2 * DAY_MS + 4, False),
        Setting("topic/new", "partitions", None, "3", 1, "User:bob", BEGIN_MS + 2 * DAY_MS + 5, False),
    )
    assert found.drift == (
        DriftCount("2026-01-01", 1, 1),
        DriftCount("2026-01-02", 0, 1),
        DriftCount("2026-01-03", 2, 2),
    )
    assert [each[:3] + each[5:] for each in found.activity if each.date == "2026-01-03"] == [
        ("2026-01-03", "User:bob", CREATES, 2, 2),
        ("2026-01-03", "User:bob", SETS, 1, 1),
    ]
    kinds = analysed(granting().batches(), None).activity
    assert [(each.api, each.kind) for each in kinds] == [(MAKES_ACLS, "acl")]
    late = analysed(story.batches(), None, since_ms=BEGIN_MS + DAY_MS)
    assert [each.at_first for each in late.settings if each.resource == "topic/orders"] == ["2"]


def granting() -> Events:
    story = Events()
    story.grant(0, allow(AclOperation.READ))
    return story


def test_acls_are_used_by_requests_that_they_allow_while_they_exist() -> None:
    own = allow(AclOperation.ALTER_CONFIGS, name="orders")
    prefixed = allow(AclOperation.ALL, name="ord", pattern_type=PatternType.PREFIXED)
    elsewhere = allow(AclOperation.ALTER_CONFIGS, name="orders", host="10.0.0.2")
    others = allow(AclOperation.ALTER_CONFIGS, name="orders", principal="User:bob")
    everybody = allow(AclOperation.ALTER_CONFIGS, name="*", principal="User:*")
    reading = allow(AclOperation.READ, name="orders")
    early = allow(AclOperation.CREATE, name="orders")
    forbidding = deny(AclOperation.DELETE, name="orders")
    on_cluster = allow_cluster(AclOperation.ALTER_CONFIGS)
    story = Events()
    for each in (own, prefixed, elsewhere, others, everybody, reading, early, forbidding):
        story.grant(0, each)
    story.grant(1, early, gone=True)
    story.set(2, "alice", "orders", None, "1")
    story.set(3, "alice", "clicks", None, "1")
    story.add_event(3, "alice", CREATES, "topic/orders", key="partitions", after=3)
    story.refuse(4, "alice", "DeleteTopics", "topic/orders", "TOPIC_AUTHORIZATION_FAILED")
    story.refuse(4, "carol", CREATES, "topic/orders", "POLICY_VIOLATION")
    story.add_event(5, "alice", SETS, "broker/1", key="log.cleaner.threads", after="2")
    story.add_event(
        5, "alice", "DeleteRecords", "topic/ordered", key="partition 0 log start offset", before=1, after=2
    )
    standing = [own, prefixed, elsewhere, others, everybody, reading, forbidding, on_cluster]
    found = analysed(story.batches(), standing)
    assert uses(found, [*standing, early]) == [
        (1, USED),
        (3, USED),
        (0, UNCHANGED),
        (0, UNCHANGED),
        (2, USED),
        (0, NOT_AUDITED),
        (1, USED),
        (1, USED),
        (0, UNCHANGED),
    ]
    rows = {(row.principal, row.acl): row for row in found.grant_rows()}
    gone = rows["User:alice", "ALLOW CREATE on topic/orders from *"]
    assert (gone.is_standing, gone.made_by, gone.removed_by) == (False, "User:root", "User:root")
    assert rows["User:alice", "ALLOW ALTER_CONFIGS on cluster/kafka-cluster from *"].made is None
    assert rows["User:bob", "ALLOW ALTER_CONFIGS on topic/orders from *"].principal_seen is None
    times = BEGIN_MS + 4 * DAY_MS
    assert [each[:-2] for each in found.refusals] == [
        ("User:alice", "DeleteTopics", "topic/orders", "refused", "TOPIC_AUTHORIZATION_FAILED", "because", 1),
        ("User:carol", CREATES, "topic/orders", "refused", "POLICY_VIOLATION", "because", 1),
    ]
    assert isinstance(found.refusals[0], RefusedChange)
    assert found.refusals[0].last_time > times
    assert found.advice[-1].startswith("User:alice had 1 authorization errors")


def test_the_command_analyses_a_brokers_audit_and_writes_a_report(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text("topics:\n  - prefix: locked\n    protected: true\n")
    settings = {
        **AUDITED,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "barnabas.policy.file": str(rules),
    }
    with EmbeddedBroker(settings) as kafka:
        admin = kafka.client.admin
        kafka.create_topic("orders")
        kafka.create_topic("locked")
        mine = allow(AclOperation.ALTER_CONFIGS, name="orders", principal="User:ANONYMOUS")
        never = allow(AclOperation.CREATE, name="ord", pattern_type=PatternType.PREFIXED)
        assert admin.create_acls([mine, never]) == [None, None]
        edits = [AlterConfigOp("retention.ms", OpType.SET, "1000")]
        assert set(admin.alter_configs({Resource(ResourceKind.TOPIC, "orders"): edits}).values()) == {None}
        with pytest.raises(KafkaError, match="POLICY_VIOLATION"):
            kafka.delete_topic("locked")
        until(lambda: any(each.outcome is AuditOutcome.REFUSED for each in events(kafka)))
        count = len(events(kafka))
        arguments = ["jobs", "audit", "-b", kafka.bootstrap, "--json"]
        dry = CliRunner().invoke(app, [*arguments, "--dry-run"])
        assert dry.exit_code == 0, dry.output
        assert json.loads(dry.stdout)["ranges"] == [{"partition": 0, "low": 0, "high": count}]
        done = CliRunner().invoke(app, [*arguments, "--report", str(tmp_path / "report")])
        assert done.exit_code == 0, done.output
        shown = CliRunner().invoke(app, arguments[:-1]).stdout
        assert ["topic/orders", "retention.ms", "-", "1000", "User:ANONYMOUS"] in [
            line.split() for line in shown.splitlines()
        ]
    found = json.loads(done.stdout)
    assert (found["events_count"], found["knows_acls"]) == (count, True)
    assert [(row["resource"], row["key"], row["last_after"]) for row in found["configs"]] == [
        ("topic/orders", "retention.ms", "1000")
    ]
    [refused] = found["refusals"]
    assert (refused["api"], refused["resource"], refused["error"]) == (
        "DeleteTopics",
        "topic/locked",
        "POLICY_VIOLATION",
    )
    assert {row["principal"]: row["status"] for row in found["grants"]} == {
        "User:ANONYMOUS": USED,
        "User:alice": UNUSED,
    }
    for name in ("activity", "configs", "refusals", "settings", "drift", "grants"):
        assert pq.read_table(tmp_path / "report" / f"{name}.parquet").to_pylist() == found[name]
    document = (tmp_path / "report" / "report.html").read_text()
    assert document.count("<svg") == 6
    assert "ALLOW CREATE on topic/ord* from *" in document


def test_a_missing_audit_is_reported() -> None:
    with EmbeddedBroker({"barnabas.audit.enable": "false"}) as kafka:
        kafka.create_topic("orders")
        with pytest.raises(
            AuditError, match="topic __barnabas_audit does not exist: Barnabas brokers create it"
        ):
            audit({"kafka.bootstrap.servers": kafka.bootstrap}, dry_run=True)


def test_a_report_without_events_is_a_page() -> None:
    assert "0 events" in audit_html(Audited(()), "here")


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"nothing",
        b"[]",
        b'{"revision": "1"}',
        b'{"revision":1,"number":0,"time":1,"principal":null}',
        None,
    ],
)
def test_a_record_that_is_no_event_is_an_error_that_names_its_offset(value: bytes | None) -> None:
    batch = pa.RecordBatch.from_pydict(
        {"offset": [7], "value": [value]}, schema=pa.schema([("offset", pa.int64()), ("value", pa.binary())])
    )
    with pytest.raises(AuditError, match="the record at offset 7 of the audit topic is not an audit event"):
        analysed([batch], None)


def test_a_login_is_taken_from_the_command_config(tmp_path: Path) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    properties = tmp_path / "client.properties"
    properties.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={module} required username="alice" password="alice-secret";\n'
    )
    with EmbeddedBroker(AUDITED, {"alice": "alice-secret"}) as guarded:
        guarded.create_topic("orders")
        guarded.produce("orders", "a")
        until(lambda: bool(events(guarded)))
        for job in ("usage", "audit"):
            command = ["jobs", job, "--bootstrap", guarded.bootstrap]
            refused = CliRunner().invoke(app, [*command, "--dry-run"])
            assert refused.exit_code != 0
            assert "--command-config" in refused.output
            done = CliRunner().invoke(app, [*command, "--command-config", str(properties)])
            assert done.exit_code == 0, done.output
            assert "alice-secret" not in done.output
