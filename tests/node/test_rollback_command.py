"""`barnabas rollback` after a mistaken change."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from barnabas.cli.main import app
from barnabas.testing import EmbeddedBroker
from barnabas.wire.barnabas_messages import FIRST_API_KEY
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from support.audit import AUDITED, published
from support.waiting import until
from support.wire import Wire

Run = Callable[..., Result]

pytestmark = pytest.mark.kafka_settings(AUDITED)


def runner(kafka: EmbeddedBroker) -> Run:
    def invoke(*command: str) -> Result:
        environment = {"BARNABAS_BOOTSTRAP": kafka.bootstrap, "COLUMNS": "200"}
        return CliRunner().invoke(app, list(command), env=environment)

    return invoke


@pytest.fixture
def run(kafka: EmbeddedBroker) -> Run:
    return runner(kafka)


def revision_of(run: Run, resource: str, key: str, after: str) -> int:
    """Return the revision at which a key got a value, from the history."""
    events = json.loads(run("history", resource, "--json").stdout)
    [revision] = [each["revision"] for each in events if (each["key"], each["after"]) == (key, after)]
    return int(revision)


def settings_of(run: Run, topic: str) -> dict[str, str]:
    [described] = json.loads(run("topics", "describe", topic, "--json").stdout)
    return dict(described["configs"])


def test_a_wrong_setting_is_found_in_the_history_and_rolled_back(kafka: EmbeddedBroker, run: Run) -> None:
    run("topics", "create", "orders", "--config", "retention.ms=86400000")
    run("configs", "set", "topic", "orders", "cleanup.policy=compact")
    run("configs", "set", "topic", "orders", "retention.ms=1", "cleanup.policy=delete")
    published(kafka, "topic/orders", "retention.ms", "1")
    good = revision_of(run, "topic/orders", "cleanup.policy", "compact")

    dry = run("rollback", "topic/orders", "--to", str(good), "--dry-run")
    assert dry.exit_code == 0, dry.output
    assert [line.split() for line in dry.output.splitlines()] == [
        ["key", "before", "after"],
        ["cleanup.policy", "delete", "compact"],
        ["retention.ms", "1", "86400000"],
    ]
    assert settings_of(run, "orders")["retention.ms"] == "1"

    kafka.restart(kill=True)
    done = json.loads(run("rollback", "topic/orders", "--to", str(good), "--json").stdout)
    assert done["keys"][1] == {"key": "retention.ms", "before": "1", "after": "86400000"}
    assert settings_of(run, "orders") == {"cleanup.policy": "compact", "retention.ms": "86400000"}

    published(kafka, "topic/orders", "retention.ms", "86400000")
    result = run("audit", "--json", "--api", "RollbackResource").stdout.splitlines()
    assert {json.loads(line)["key"] for line in result} == {"cleanup.policy", "retention.ms"}
    assert "already in the state of" in run("rollback", "topic/orders", "--to", str(good)).output


def test_a_rollback_that_is_not_possible_is_explained(run: Run) -> None:
    run("topics", "create", "orders")
    future = run("rollback", "topic/orders", "--to", "100000")
    assert (future.exit_code, "does not exist yet" in future.output) == (1, True)
    unknown = run("rollback", "user/nobody", "--to", "100000")
    assert unknown.exit_code == 1
    nothing = run("rollback", "orders", "--to", "1")
    assert (nothing.exit_code, "topic/orders" in nothing.output) == (1, True)


def test_a_policy_violation_by_a_rollback_names_the_policy(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text("topics:\n  - prefix: orders\n    partitions: {max: 10}\n")
    with EmbeddedBroker(settings={**AUDITED, "barnabas.policy.file": str(rules)}) as kafka:
        run = runner(kafka)
        run("topics", "create", "orders", "--config", "retention.ms=1")
        published(kafka, "topic/orders", "retention.ms", "1")
        first = revision_of(run, "topic/orders", "retention.ms", "1")
        run("configs", "set", "topic", "orders", "retention.ms=5000")
        rules.write_text("topics:\n  - prefix: orders\n    configs:\n      retention.ms: {min: 1000}\n")
        kafka.restart()
        refused = run("rollback", "topic/orders", "--to", str(first))
        assert refused.exit_code == 4
        assert "retention.ms" in refused.output
        assert "rules.yml" in refused.output or "orders" in refused.output
        assert settings_of(run, "orders")["retention.ms"] == "5000"
        until(lambda: "POLICY_VIOLATION" in run("audit", "--api", "RollbackResource").output)


def test_the_history_marks_a_gap_where_the_audit_was_off() -> None:
    with EmbeddedBroker(settings=AUDITED) as kafka:
        run = runner(kafka)
        run("topics", "create", "orders", "--config", "retention.ms=1")
        published(kafka, "topic/orders", "retention.ms", "1")
        first = revision_of(run, "topic/orders", "retention.ms", "1")
        for enabled in ("false", "true"):
            kafka._settings["barnabas.audit.enable"] = enabled
            kafka.restart()
            run("configs", "set", "topic", "orders", f"retention.ms={1000 if enabled == 'false' else 2000}")
        result = run("rollback", "topic/orders", "--to", str(first))
        assert (result.exit_code, "the history, which begins with revision" in result.output) == (1, True)


def test_a_rolled_back_password_is_valid_again_and_never_shown(kafka: EmbeddedBroker, run: Run) -> None:
    for password in ("first-secret", "second-secret"):
        result = run("users", "add", "alice", "--password", password)
        assert result.exit_code == 0, result.output
    published(kafka, "user/alice", "SCRAM-SHA-256", {"iterations": 4096})
    stored = credentials(kafka)
    first = json.loads(run("history", "user/alice", "--json").stdout)[0]["revision"]
    done = run("rollback", "user/alice", "--to", str(first), "--json")
    assert done.exit_code == 0, done.output
    assert credentials(kafka) != stored
    everything = done.output + run("audit", "--json").output
    assert "secret" not in everything
    assert not any(
        text in everything
        for text in (*json.loads(stored).values(), *json.loads(credentials(kafka)).values())
    )


def credentials(kafka: EmbeddedBroker) -> str:
    """Return alice's stored keys by mechanism."""
    with sqlite3.connect(kafka.directory / "metadata.sqlite") as database:
        (value,) = database.execute(
            "SELECT value FROM items WHERE key = 'scram_credentials/alice'"
        ).fetchone()
    database.close()
    return json.dumps({mechanism: keys[1] for mechanism, keys in json.loads(value).items()})


@pytest.mark.parametrize(("software", "is_advertised"), [("barnabas", True), ("apache-kafka-java", False)])
def test_extension_apis_are_advertised_to_barnabas_clients_only(
    wire: Wire, software: str, is_advertised: bool
) -> None:
    request = ApiVersionsRequest(client_software_name=software, client_software_version="1")
    answer = wire.ask(request, 3)
    assert any(each.api_key >= FIRST_API_KEY for each in answer.api_keys) is is_advertised
