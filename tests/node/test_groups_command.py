"""`barnabas groups` and `barnabas transactions` against a broker."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from typer.testing import CliRunner

from barnabas.base.ids import TopicPartition as Position
from barnabas.cli.main import app
from barnabas.testing import EmbeddedBroker
from support.waiting import until

Run = Callable[..., Any]
WAIT_S = 30


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    settings = {"log.dirs": str(tmp_path), "group.initial.rebalance.delay.ms": "0"}
    with EmbeddedBroker(settings) as running:
        running.create_topic("t", partitions=2)
        for partition in (0, 1):
            for number in range(5):
                running.produce("t", str(number), partition=partition)
        yield running


@pytest.fixture
def run(broker: EmbeddedBroker) -> Run:
    """Return a function that runs a command with --json, and returns its output or the name of its error."""

    def invoke(*arguments: str) -> Any:
        result = CliRunner().invoke(app, [*arguments, "--json"], env={"BARNABAS_BOOTSTRAP": broker.bootstrap})
        return json.loads(result.stdout) if result.exit_code == 0 else json.loads(result.stderr)["error"]

    return invoke


def member(broker: EmbeddedBroker, protocol: str) -> Consumer:
    """Start a member of "readers" with partitions."""
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "readers",
        "group.protocol": protocol,
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    consumer.subscribe(["t"])

    def assigned() -> bool:
        consumer.poll(0.05)
        return len(consumer.assignment()) == 2

    until(assigned)
    return consumer


def committed(run: Run) -> dict[int, tuple[int | None, int | None]]:
    """Return partition -> (committed offset, lag)."""
    return {
        each["partition"]: (each["committed"], each["lag"]) for each in run("groups", "offsets", "readers")
    }


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_listed_reset_and_deleted(broker: EmbeddedBroker, run: Run, protocol: str) -> None:
    consumer = member(broker, protocol)
    assert committed(run) == {0: (None, None), 1: (None, None)}
    consumer.commit(offsets=[TopicPartition("t", 0, 2), TopicPartition("t", 1, 5)], asynchronous=False)
    listed = {"group_id": "readers", "type": protocol, "protocol_type": "consumer", "state": "Stable"}
    assert run("groups", "list", "--type", protocol) == [listed]
    [described] = run("groups", "describe", "readers")
    [found] = described["members"]
    assert [tp["partition"] for tp in found["assignment"]] == [0, 1]
    assert committed(run) == {0: (2, 3), 1: (5, 0)}
    assert run("groups", "reset-offsets", "readers", "--to-earliest") == "NON_EMPTY_GROUP"
    assert run("groups", "delete", "readers") == "NON_EMPTY_GROUP"
    consumer.close()

    run("groups", "reset-offsets", "readers", "t:0", "--to-latest")
    assert committed(run) == {0: (5, 0), 1: (5, 0)}
    run("groups", "delete-offsets", "readers", "t:0")
    assert committed(run) == {0: (None, None), 1: (5, 0)}
    assert run("groups", "delete", "readers") == [{"group": "readers", "error": None}]
    assert run("groups", "describe", "readers") == "GROUP_ID_NOT_FOUND"


def test_a_transaction_is_listed_and_aborted(broker: EmbeddedBroker, run: Run) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "tx"})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce("t", "v", partition=1)
    producer.flush()
    [listed] = run("transactions", "list", "--state", "Ongoing")
    assert listed["transactional_id"] == "tx"
    assert run("transactions", "describe", "tx")["partitions"] == [{"topic": "t", "partition": 1}]
    [active] = [each for each in run("transactions", "producers", "t:1") if each["transaction_start_offset"]]
    assert (active["producer_id"], active["transaction_start_offset"]) == (listed["producer_id"], 5)
    assert run("transactions", "abort", "t:1", "--start-offset", "5") == active
    producers = run("transactions", "producers", "t:1")
    assert all(each["transaction_start_offset"] is None for each in producers)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_explain_shows_who_joined_and_left_and_what_was_assigned(
    broker: EmbeddedBroker, run: Run, protocol: str
) -> None:
    consumer = member(broker, protocol)
    until(lambda: run("groups", "explain", "readers")["rebalances"][0]["status"] == "completed")
    consumer.close()
    until(lambda: len(run("groups", "explain", "readers")["rebalances"]) == 2)
    group = run("groups", "explain", "readers")
    assert (group["group_id"], group["type"], group["state"]) == ("readers", protocol, "Empty")
    left, joined = group["rebalances"]
    assert [event["kind"] for event in joined["events"]] == ["joined"]
    assert [event["kind"] for event in left["events"]] == ["left"]
    [assignment] = joined["assignments"]
    assert (assignment["client_id"], assignment["topics"]) == ("rdkafka", {"t": [0, 1]})
    assert assignment["member_id"] == joined["events"][0]["member_id"] == left["events"][0]["member_id"]
    assert joined["duration_ms"] == joined["completed_ms"] - joined["started_ms"] >= 0
    assert len(run("groups", "explain", "readers", "--last", "1")["rebalances"]) == 1
    shown = CliRunner().invoke(
        app, ["groups", "explain", "readers"], env={"BARNABAS_BOOTSTRAP": broker.bootstrap}
    )
    assert f"{assignment['member_id']} (rdkafka at 127.0.0.1) joined" in shown.stdout
    assert ": t 0-1" in shown.stdout


def test_a_group_without_rebalances_has_an_empty_history(broker: EmbeddedBroker, run: Run) -> None:
    assert run("groups", "explain", "unknown") == "GROUP_ID_NOT_FOUND"
    broker.client.groups.commit_offsets("idle", {Position("t", 0): 1})
    assert run("groups", "explain", "idle")["rebalances"] == []
