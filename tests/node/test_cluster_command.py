"""`barnabas cluster` against brokers that fail and recover."""

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from interop.brokers import free_ports
from typer.testing import CliRunner, Result

from barnabas.cli.main import app
from barnabas.cli.support.failures import FAILED, OK, UNREACHABLE
from barnabas.testing import EmbeddedCluster
from support.process import BrokerProcess
from support.waiting import until


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(3, {"broker.rack": "a"}) as running:
        running.create_topic("orders", 3, {"min.insync.replicas": "2"})
        running.produce("orders", b"one", partition=0)
        yield running


def run(cluster: EmbeddedCluster, *arguments: str) -> Result:
    environment = {"BARNABAS_BOOTSTRAP": cluster.bootstrap, "COLUMNS": "300"}
    return CliRunner().invoke(app, ["cluster", "status", *arguments], env=environment)


def described(cluster: EmbeddedCluster) -> dict[str, Any]:
    result = run(cluster, "--json")
    assert result.stdout, result.output
    status: dict[str, Any] = json.loads(result.stdout)
    assert result.exit_code == (OK if status["healthy"] else FAILED)
    return status


def column(status: dict[str, Any], name: str) -> list[Any]:
    return [broker[name] for broker in status["brokers"]]


def until_fenced(cluster: EmbeddedCluster, node_id: int, *, fenced: bool = True) -> None:
    def states() -> list[bool]:
        live = [broker.server.broker for number, broker in cluster.brokers.items() if number != node_id]
        return [broker.image.brokers[str(node_id)].fenced for broker in live]

    until(lambda: states() == [fenced, fenced])


def test_a_healthy_cluster_exits_with_0(cluster: EmbeddedCluster) -> None:
    status = described(cluster)
    assert (status["healthy"], status["problems"], status["unhealthy_partitions"]) == (True, [], [])
    assert column(status, "broker") == [1, 2, 3]
    assert column(status, "controller") == [True, False, False]
    assert column(status, "state") == ["live"] * 3
    assert column(status, "session") == [True] * 3
    assert column(status, "rack") == ["a"] * 3
    assert column(status, "metadata_state") == ["same"] * 3
    assert len(set(column(status, "metadata_hash"))) == 1
    assert column(status, "replicas") == [3, 3, 3]
    assert sum(column(status, "leaders")) == 3
    assert len(set(column(status, "epoch"))) == 3
    assert None not in column(status, "since_ms")
    assert status["metadata_store"] == "sqlite"
    lines = run(cluster).stdout.splitlines()
    assert lines[0].startswith(f"cluster {status['cluster_id']}, controller 1, metadata store sqlite")
    assert lines[-1] == "healthy"


def test_a_dead_broker_is_fenced_and_its_partitions_are_under_replicated_until_it_returns(
    cluster: EmbeddedCluster,
) -> None:
    before = described(cluster)
    cluster.kill(3)
    until_fenced(cluster, 3)
    until(lambda: described(cluster)["under_replicated_partitions"] == 3)
    status = described(cluster)
    assert status["problems"] == ["broker 3 is fenced", "3 partitions are under-replicated"]
    assert column(status, "state") == ["live", "live", "fenced"]
    assert column(status, "session") == [True, True, False]
    assert column(status, "epoch") == column(before, "epoch")
    assert column(status, "since_ms")[2] >= column(before, "since_ms")[2]
    assert [(each["topic"], each["states"]) for each in status["unhealthy_partitions"]] == [
        ("orders", ["under-replicated"])
    ] * 3
    text = run(cluster)
    assert text.exit_code == FAILED
    assert "broker 3 is fenced" in text.stdout.splitlines()
    cluster.restart(3)
    until(lambda: described(cluster)["healthy"])
    after = described(cluster)
    assert column(after, "epoch")[2] > column(before, "epoch")[2]
    assert column(after, "metadata_state") == ["same"] * 3


def test_wait_returns_when_the_cluster_is_healthy_again_or_the_time_is_over(cluster: EmbeddedCluster) -> None:
    assert run(cluster, "--wait", "300").stdout.splitlines()[-1] == "healthy"
    cluster.shut_down(3)
    until_fenced(cluster, 3)
    assert "broker 3 is fenced" in run(cluster, "--wait", "0.1").stdout.splitlines()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(run, cluster, "--wait", "300", "--json")
        cluster.restart(3)
        status = json.loads(waiting.result().stdout)
    assert (status["healthy"], column(status, "state")) == (True, ["live"] * 3)


def test_wait_continues_while_no_broker_responds(tmp_path: Path) -> None:
    [port] = free_ports(1)
    address = f"127.0.0.1:{port}"

    def status(wait_s: float) -> Result:
        arguments = ["cluster", "status", "--wait", str(wait_s), "--bootstrap", address]
        return CliRunner().invoke(app, arguments)

    assert status(0.1).exit_code == UNREACHABLE
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(status, 300)
        with BrokerProcess(tmp_path, port=port):
            assert waiting.result().exit_code == OK


def test_without_two_brokers_partitions_are_under_min_isr_and_the_survivor_reports(
    cluster: EmbeddedCluster,
) -> None:
    cluster.create_topic("solo", replication_factor=1, configs={"min.insync.replicas": "1"})
    [holder] = [cluster.leader("solo")]
    others = [node_id for node_id in cluster.brokers if node_id != holder]
    assert holder is not None
    cluster.kill(holder)
    until_fenced(cluster, holder)
    cluster.kill(others[0])
    survivor = cluster.brokers[others[1]].server.broker
    until(lambda: survivor.image.brokers[str(others[0])].fenced)
    until(lambda: described(cluster)["under_min_isr_partitions"] == 4)  # with the one that is offline
    status = described(cluster)
    assert (status["offline_partitions"], status["under_replicated_partitions"]) == (1, 4)
    assert status["controller_id"] == others[1]
    assert status["unhealthy_partitions"][0]["topic"] == "solo"


def test_a_paused_broker_does_not_respond_and_the_others_still_appear(cluster: EmbeddedCluster) -> None:
    cluster.pause(2)
    try:
        status = described(cluster)
        states = column(status, "state")
        assert (states[0], states[2], states[1] in ("unreachable", "fenced")) == ("live", "live", True)
        assert column(status, "version")[1] is None
    finally:
        cluster.resume(2)
    until(lambda: described(cluster)["healthy"])


def test_a_broker_with_different_metadata_is_found_by_the_command_and_by_the_controller(
    cluster: EmbeddedCluster,
) -> None:
    controller = cluster.brokers[1]
    comparison = controller.server.parts.metadata_comparison

    comparing: list[asyncio.Future[None]] = []

    def compare() -> frozenset[int]:
        before = comparison.comparisons_count
        controller.call_soon(lambda: comparing.append(asyncio.ensure_future(comparison.compare())))
        until(lambda: comparison.comparisons_count > before)
        return comparison.different

    assert compare() == frozenset()
    path = controller.server.broker.config.text("barnabas.store").removeprefix("sqlite:")
    cluster.shut_down(3)
    with contextlib.closing(sqlite3.connect(path)) as store, store:
        store.execute("UPDATE items SET value = CAST(value || ' ' AS BLOB) WHERE key = 'topics/orders'")
    cluster.restart(3)
    until(lambda: column(described(cluster), "metadata_state")[2] == "different")
    assert "broker 3 has different metadata" in described(cluster)["problems"]
    assert compare() == {3}
