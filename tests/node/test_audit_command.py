"""`barnabas audit` and `barnabas history`, against a broker."""

import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from barnabas.cli.main import app
from barnabas.testing import EmbeddedBroker
from barnabas.wire.messages.metadata import MetadataRequest
from support.audit import AUDITED, published
from support.waiting import until

Run = Callable[..., Result]

pytestmark = pytest.mark.kafka_settings(AUDITED)


@pytest.fixture
def run(kafka: EmbeddedBroker) -> Run:
    def invoke(*command: str) -> Result:
        environment = {"BARNABAS_BOOTSTRAP": kafka.bootstrap, "COLUMNS": "200"}
        return CliRunner().invoke(app, list(command), env=environment)

    return invoke


@pytest.fixture
def changed(kafka: EmbeddedBroker, run: Run) -> Run:
    """A topic whose retention was set twice, and another topic."""
    run("topics", "create", "orders")
    run("topics", "create", "clicks")
    for value in ("1000", "2000"):
        run("configs", "set", "topic", "orders", f"retention.ms={value}")
    published(kafka, "topic/orders", "retention.ms", "2000")
    return run


def revisions(run: Run) -> list[int]:
    """Those of the settings of the retention."""
    events = json.loads(run("history", "topic/orders", "--json").stdout)
    return [each["revision"] for each in events if each["key"] == "retention.ms"]


def test_the_audit_is_a_table_of_what_is_asked_for(changed: Run) -> None:
    header, *lines = changed(
        "audit", "--resource", "topic/ord*", "--api", "IncrementalAlterConfigs"
    ).output.splitlines()
    assert header.split() == [
        "revision",
        "time",
        "principal",
        "api",
        "outcome",
        "resource",
        "key",
        "before",
        "after",
    ]
    assert [line.split()[-4:] for line in lines] == [
        ["topic/orders", "retention.ms", "-", "1000"],
        ["topic/orders", "retention.ms", "1000", "2000"],
    ]


def test_programs_get_a_line_of_json_for_each_event(changed: Run) -> None:
    lines = changed(
        "audit", "--json", "--principal", "User:ANONYMOUS", "--since", "1h ago"
    ).stdout.splitlines()
    assert {json.loads(line)["resource"] for line in lines} == {"topic/orders", "topic/clicks"}
    assert changed("audit", "--json", "--principal", "User:nobody").stdout == ""
    assert changed("audit", "--json", "--outcome", "refused").stdout == ""


def test_the_history_shows_what_a_resource_was_like(changed: Run) -> None:
    first, second = revisions(changed)
    at_first = json.loads(changed("history", "topic/orders", "--at", str(first), "--json").stdout)
    assert (at_first["retention.ms"], at_first["partitions"]) == ("1000", 1)
    assert json.loads(changed("history", "topic/orders", "--at", "0", "--json").stdout) == {}
    lines = changed("history", "topic/orders", "--since", str(first), "--at", str(second)).output.splitlines()
    assert [line.split() for line in lines[1:]] == [["retention.ms", "1000", "2000"]]


def test_of_what_the_audit_does_not_know_there_is_no_history(changed: Run) -> None:
    told = changed("history", "topic/nope")
    assert told.exit_code == 3
    assert "no audit events of topic/nope" in told.output


def test_where_nothing_has_changed_the_audit_is_empty(run: Run) -> None:
    assert run("audit", "--json").stdout == ""
    assert run("audit").exit_code == 0


@pytest.mark.parametrize(
    ("command", "words"),
    [(("--outcome", "bad"), "changed, refused, warned"), (("--since", "x"), "invalid time")],
)
def test_what_cannot_be_meant_is_wrong_use(run: Run, command: tuple[str, ...], words: str) -> None:
    told = run("audit", *command)
    assert told.exit_code == 2
    assert words in told.output


def test_the_audit_is_followed_from_before_its_first_event(kafka: EmbeddedBroker) -> None:
    command = [
        sys.executable,
        "-c",
        "from barnabas.cli.main import main; main()",
        "audit",
        "--follow",
        "--json",
    ]
    environment = os.environ | {"BARNABAS_BOOTSTRAP": kafka.bootstrap}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as follower:
        try:
            assert follower.stdout is not None
            until(lambda: _has_asked(kafka))
            kafka.create_topic("orders")
            assert json.loads(follower.stdout.readline())["resource"] == "topic/orders"
        finally:
            follower.kill()


def _has_asked(kafka: EmbeddedBroker) -> bool:
    """Whether the broker has been asked for the topic that there is not yet: after the brokers, at least."""
    return sum(kafka.server.statistics.apis[MetadataRequest.API_KEY].buckets) > 1
