"""`barnabas audit` and `barnabas history`, against a broker."""

import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from barnabas.cli.main import app
from barnabas.cli.support.times import format_timestamp
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
    """Set a topic's retention twice, and create another topic; return the runner."""
    run("topics", "create", "orders")
    run("topics", "create", "clicks")
    for value in ("1000", "2000"):
        run("configs", "set", "topic", "orders", f"retention.ms={value}")
    published(kafka, "topic/orders", "retention.ms", "2000")
    return run


def revisions(run: Run) -> list[int]:
    """Return the revisions of the changes of the retention."""
    events = json.loads(run("history", "topic/orders", "--json").stdout)
    return [each["revision"] for each in events if each["key"] == "retention.ms"]


def test_the_audit_is_printed_as_a_filtered_table(changed: Run) -> None:
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
    times = [json.loads(line)["time"] for line in changed("audit", "--json").stdout.splitlines()]
    assert {line.split()[1] for line in lines} <= {format_timestamp(time) for time in times}


def test_json_output_has_one_line_for_each_event(changed: Run) -> None:
    lines = changed(
        "audit", "--json", "--principal", "User:ANONYMOUS", "--since", "1h ago"
    ).stdout.splitlines()
    assert {json.loads(line)["resource"] for line in lines} == {"topic/orders", "topic/clicks"}
    assert changed("audit", "--json", "--principal", "User:nobody").stdout == ""
    assert changed("audit", "--json", "--outcome", "refused").stdout == ""


def test_the_history_shows_earlier_states_of_a_resource(changed: Run) -> None:
    first, second = revisions(changed)
    at_first = json.loads(changed("history", "topic/orders", "--at", str(first), "--json").stdout)
    assert (at_first["retention.ms"], at_first["partitions"]) == ("1000", 1)
    assert json.loads(changed("history", "topic/orders", "--at", "0", "--json").stdout) == {}
    lines = changed("history", "topic/orders", "--since", str(first), "--at", str(second)).output.splitlines()
    assert [line.split() for line in lines[1:]] == [["retention.ms", "1000", "2000"]]


def test_a_resource_without_audit_events_has_no_history(changed: Run) -> None:
    result = changed("history", "topic/nope")
    assert result.exit_code == 3
    assert "no audit events of topic/nope" in result.output


def test_without_changes_the_audit_is_empty(run: Run) -> None:
    assert run("audit", "--json").stdout == ""
    assert run("audit").exit_code == 0


@pytest.mark.parametrize(
    ("command", "words"),
    [(("--outcome", "bad"), "changed, refused, warned"), (("--since", "x"), "invalid time")],
)
def test_invalid_arguments_are_usage_errors(run: Run, command: tuple[str, ...], words: str) -> None:
    result = run("audit", *command)
    assert result.exit_code == 2
    assert words in result.output


def test_follow_starts_before_the_first_event(kafka: EmbeddedBroker) -> None:
    command = [sys.executable, "-m", "barnabas", "audit", "--follow", "--json"]
    environment = os.environ | {"BARNABAS_BOOTSTRAP": kafka.bootstrap}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as follower:
        try:
            assert follower.stdout is not None
            until(lambda: has_requested_topic(kafka))
            kafka.create_topic("orders")
            assert json.loads(follower.stdout.readline())["resource"] == "topic/orders"
        finally:
            follower.kill()


def has_requested_topic(kafka: EmbeddedBroker) -> bool:
    """Whether the broker has received a metadata request for the topic that does not exist yet."""
    return sum(kafka.server.statistics.apis[MetadataRequest.API_KEY].buckets) > 1
