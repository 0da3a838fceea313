"""`barnabas drift` against a broker: every change that somebody makes by hand is found, and put right by `apply`."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from barnabas.cli.main import app
from barnabas.testing import EmbeddedBroker
from support.declared import SECURED, enriched
from support.process import clean_environment

Run = Callable[..., Result]
COMMAND = [sys.executable, "-c", "from barnabas.cli.main import main; main()"]
PRUNED = "prune: [topics, acls, quotas, users, groups, brokers, client_metrics, configs]\n"

pytestmark = pytest.mark.kafka_settings(SECURED)


@pytest.fixture
def run(kafka: EmbeddedBroker) -> Run:
    def invoke(*command: str | Path) -> Result:
        environment = {
            "BARNABAS_BOOTSTRAP": kafka.bootstrap,
            "COLUMNS": "200",
            "PASSWORD_ALICE": "a word",
            "PASSWORD_BOB": "a word",
        }
        return CliRunner().invoke(app, [str(each) for each in command], env=environment)

    return invoke


@pytest.fixture
def file(kafka: EmbeddedBroker, run: Run, tmp_path: Path) -> Path:
    """What a rich cluster has set, declared to be all."""
    enriched(kafka.bootstrap)
    file = tmp_path / "cluster.yaml"
    file.write_text(PRUNED + run("export").stdout)
    return file


def drifted(result: Result) -> dict[tuple[str, str], tuple[Any, Any]]:
    found = json.loads(result.stdout)["differences"]
    assert result.exit_code == (2 if found else 0), result.output
    return {(each["resource"], each["key"]): (each["declared"], each["found"]) for each in found}


@pytest.mark.parametrize(
    ("command", "place", "values"),
    [
        ("topics create extra -p 2", ("topic/extra", "partitions"), (None, 2)),
        ("topics delete plain --yes", ("topic/plain", "partitions"), (2, None)),
        ("configs set topic orders retention.ms=7", ("topic/orders", "retention.ms"), ("86400000", "7")),
        ("configs set topic plain segment.ms=7", ("topic/plain", "segment.ms"), (None, "7")),
        ("configs delete topic orders cleanup.policy", ("topic/orders", "cleanup.policy"), ("compact,delete", None)),
        ("configs set broker default log.retention.ms=7", ("broker/", "log.retention.ms"), ("172800000", "7")),
        ("configs set broker 1 log.cleaner.threads=3", ("broker/1", "log.cleaner.threads"), ("2", "3")),
        ("configs set group billing consumer.session.timeout.ms=49000",
         ("group/billing", "consumer.session.timeout.ms"), ("50000", "49000")),
        ("configs delete client-metrics lag interval.ms", ("client-metrics/lag", "interval.ms"), ("10000", None)),
        ("acls add --principal eve --operation read --topic plain",
         ("topic/plain", "acl User:eve ALLOW READ from *"), (None, True)),
        ("acls remove --principal bob --yes", ("group/team-*", "acl User:bob DENY READ from 10.0.0.1"), (True, None)),
        ("quotas set user=alice producer_byte_rate=7", ("quota/user=alice", "producer_byte_rate"), (1048576.0, 7.0)),
        ("quotas remove ip=127.0.0.9", ("quota/ip=127.0.0.9", "connection_creation_rate"), (100.0, None)),
        ("users add eve --password x -m SCRAM-SHA-256", ("user/eve", "SCRAM-SHA-256"), (None, {"iterations": 4096})),
        ("users remove alice --yes", ("user/alice", "SCRAM-SHA-256"), ({"iterations": 8192}, None)),
    ],
)  # fmt: skip
def test_every_single_change_is_found_and_put_right(
    run: Run, file: Path, command: str, place: tuple[str, str], values: tuple[Any, Any]
) -> None:
    assert drifted(run("drift", file, "--json")) == {}
    done = run(*command.split())
    if done.exit_code == 2:  # this command asks nobody
        done = run(*command.replace(" --yes", "").split())
    assert done.exit_code == 0, done.output
    found = drifted(run("drift", file, "--json"))
    assert found.pop(place) == values
    assert {name for name, _ in found} <= {place[0]}, "nothing else is told of"
    put_right = run("apply", file, "--yes", "--allow-destroy")
    assert put_right.exit_code == 0, put_right.output
    assert drifted(run("drift", file, "--json")) == {}


def test_what_a_broker_was_started_with_can_be_declared(run: Run, file: Path) -> None:
    file.write_text(
        "brokers: {1: {expect: {num.io.threads: 9, compression.type: producer, log.cleaner.threads: 2}}}\n"
    )
    assert drifted(run("drift", file, "--json")) == {("broker/1", "num.io.threads"): ("9", "8")}
    printed = run("drift", file)
    assert printed.exit_code == 2
    assert printed.stdout.splitlines()[1].split() == ["broker/1", "num.io.threads", "9", "8"]


def test_who_watches_and_never_saw_anything_is_told_why(kafka: EmbeddedBroker, file: Path) -> None:
    environment = clean_environment({"BARNABAS_BOOTSTRAP": kafka.bootstrap})
    file.write_text("brokers: {1: {expect: {num.io.threads: 9}}}\n")
    command = [*COMMAND, "drift", str(file), "--watch", "--interval", "0.1"]
    kafka.fail_next("DescribeConfigs", "CLUSTER_AUTHORIZATION_FAILED", times=10_000)
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stderr
        assert json.loads(process.stdout.readline())["event"] == "failed"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 4
        assert "CLUSTER_AUTHORIZATION_FAILED" in process.stderr.read()


def test_two_clusters_are_compared(kafka: EmbeddedBroker, run: Run, file: Path) -> None:
    with EmbeddedBroker({**SECURED, "num.io.threads": "3"}) as other:
        enriched(other.bootstrap)
        threads = {("broker/1", "num.io.threads"): ("3", "8")}
        assert drifted(run("drift", "--against", other.bootstrap, "--json")) == threads
        other.create_topic("more", 3)
        assert drifted(run("drift", "--against", other.bootstrap, "--json", "-s", "topics")) == {
            ("topic/more", "partitions"): (3, None),
            ("topic/more", "replication_factor"): (1, None),
        }
    assert run("drift").exit_code == 1
    assert run("drift", file, "--against", kafka.bootstrap).exit_code == 1


def test_who_watches_is_told_what_comes_and_goes(kafka: EmbeddedBroker, run: Run, file: Path) -> None:
    environment = clean_environment({"BARNABAS_BOOTSTRAP": kafka.bootstrap})
    command = [*COMMAND, "drift", str(file), "--watch", "--interval", "0.1"]
    run("configs", "set", "topic", "orders", "retention.ms=7")
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        first = json.loads(process.stdout.readline())
        assert (first["event"], first["resource"], first["found"]) == ("drift", "topic/orders", "7")
        run("configs", "set", "topic", "orders", "retention.ms=86400000")
        second = json.loads(process.stdout.readline())
        assert (second["event"], second["key"], second["found"]) == ("resolved", "retention.ms", "86400000")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
