"""`barnabas drift` against a broker: every manual change is found, and `apply` reverts it."""

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
from support.drifts import PRUNED, SINGLE_CHANGES, ResourceKey, drifted
from support.process import clean_environment

Run = Callable[..., Result]
COMMAND = [sys.executable, "-m", "barnabas"]

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
    """Export a sample cluster as an exhaustive state."""
    enriched(kafka.bootstrap)
    file = tmp_path / "cluster.yaml"
    file.write_text(PRUNED + run("export").stdout)
    return file


@pytest.mark.parametrize(("command", "key", "values"), SINGLE_CHANGES)
def test_every_single_change_is_found_and_reverted(
    run: Run, file: Path, command: str, key: ResourceKey, values: tuple[Any, Any]
) -> None:
    assert drifted(run("drift", file, "--json")) == {}
    done = run(*command.split())
    assert done.exit_code == 0, done.output
    found = drifted(run("drift", file, "--json"))
    assert found.pop(key) == values
    assert {name for name, _ in found} <= {key[0]}
    put_right = run("apply", file, "--yes", "--allow-destroy")
    assert put_right.exit_code == 0, put_right.output
    assert drifted(run("drift", file, "--json")) == {}


def test_settings_of_a_brokers_start_can_be_declared(run: Run, file: Path) -> None:
    file.write_text(
        "brokers: {1: {expect: {num.io.threads: 9, compression.type: producer, log.cleaner.threads: 2}}}\n"
    )
    assert drifted(run("drift", file, "--json")) == {("broker/1", "num.io.threads"): ("9", "8")}
    printed = run("drift", file)
    assert printed.exit_code == 2
    assert printed.stdout.splitlines()[1].split() == ["broker/1", "num.io.threads", "9", "8"]


def test_watching_an_unreachable_cluster_fails_with_the_reason(kafka: EmbeddedBroker, file: Path) -> None:
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


def test_watching_reports_new_and_resolved_drift(kafka: EmbeddedBroker, run: Run, file: Path) -> None:
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
