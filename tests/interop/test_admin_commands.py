"""Commands for rare administrative APIs on Barnabas and Apache Kafka: output and exit codes."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from interop.brokers import Broker
from typer.testing import CliRunner, Result

from barnabas.cli.main import app

pytestmark = pytest.mark.cluster

Run = Callable[..., Any]
RECORDS_COUNT = 10
STRANGER = ("77", "AAECAwQFBgcICQoLDA0ODw")


@pytest.fixture
def call(broker: Broker) -> Callable[..., Result]:
    """Return a function that runs a command with --json."""

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--json"], env={"BARNABAS_BOOTSTRAP": broker.bootstrap})

    return invoke


@pytest.fixture
def run(call: Callable[..., Result]) -> Run:
    """Return the same for commands that must succeed; it returns their output."""

    def invoke(*arguments: str) -> Any:
        result = call(*arguments)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return invoke


@pytest.fixture
def topic(broker: Broker, names: Iterator[str]) -> str:
    """Create a topic with two partitions and as many records, with timestamps 1000, 1001 ..., in the first."""
    name = next(names)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, 2)])[name].result()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS_COUNT):
        producer.produce(name, str(number), partition=0, timestamp=1_000 + number)
    producer.flush()
    return name


def test_offsets_are_listed_by_spec(run: Run, topic: str) -> None:
    first, second = run("records", "offsets", topic, "--time", "1005")
    assert first == {
        "topic": topic,
        "partition": 0,
        "earliest": 0,
        "latest": 10,
        "newest": 9,
        "newest_timestamp_ms": 1009,
        "at_time": 5,
    }
    assert (second["latest"], second["newest"], second["at_time"]) == (0, None, None)


def test_the_end_of_an_epoch_is_printed(run: Run, topic: str) -> None:
    [first] = run("records", "epoch-ends", f"{topic}:0", "--epoch", "0")
    assert (first["leader_epoch"], first["end_offset"]) == (0, RECORDS_COUNT)


def test_records_are_deleted(run: Run, topic: str) -> None:
    assert run("records", "delete", f"{topic}:0=4") == [{"topic": topic, "partition": 0, "earliest": 4}]
    assert [each["earliest"] for each in run("records", "delete", f"{topic}=end")] == [RECORDS_COUNT, 0]


def test_partitions_are_described(run: Run, broker: Broker, topic: str) -> None:
    first, _ = run("topics", "partitions", topic)
    assert (first["partition"], sorted(first["isr"])) == (0, sorted(broker.nodes))
    assert first["leader"] in broker.nodes
    assert run("topics", "partitions", topic, "--unhealthy") == []


def test_all_configs_are_replaced(run: Run, topic: str) -> None:
    run("configs", "set", "topic", topic, "retention.ms=1000", "cleanup.policy+=compact")
    run("configs", "set", "topic", topic, "cleanup.policy-=delete")
    run("configs", "replace", "topic", topic, "segment.bytes=2000000")
    found = run("configs", "get", "topic", topic)["configs"]
    assert [(each["config"], each["value"]) for each in found] == [("segment.bytes", "2000000")]


def test_the_level_of_a_logger_and_the_configs_of_groups_and_metrics_are_set(
    run: Run, broker: Broker
) -> None:
    run("configs", "set", "group", "readers", "consumer.session.timeout.ms=50000")
    run("configs", "set", "client-metrics", "all", "interval.ms=30000")
    listed = run("configs", "list", "group", "client-metrics")
    assert {(each["kind"], each["name"]) for each in listed} >= {
        ("group", "readers"),
        ("client-metrics", "all"),
    }
    run("configs", "delete", "client-metrics", "all", "interval.ms")
    loggers = run("configs", "get", "logger", str(broker.node_id), "--all")["configs"]
    name = loggers[0]["config"]
    run("configs", "set", "logger", str(broker.node_id), f"{name}=DEBUG")
    [found] = run("configs", "get", "logger", str(broker.node_id), name)["configs"]
    assert found["value"] == "DEBUG"
    run("configs", "delete", "logger", str(broker.node_id), name)


def test_an_absent_static_member_is_removed(
    run: Run, call: Callable[..., Result], broker: Broker, topic: str
) -> None:
    group = f"group-of-{topic}"
    member = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "group.instance.id": "worker-3",
            "auto.offset.reset": "earliest",
        }
    )
    member.subscribe([topic])
    assert member.poll(40) is not None
    member.close()
    [before] = run("groups", "describe", group)
    assert [each["instance_id"] for each in before["members"]] == ["worker-3"]
    stranger = call("groups", "remove-members", group, "--instance", "worker-4")
    assert (stranger.exit_code, json.loads(stranger.stderr)["error"]) == (3, "UNKNOWN_MEMBER_ID")
    [removed] = run("groups", "remove-members", group, "--instance", "worker-3")
    assert (removed["instance_id"], removed["error"]) == ("worker-3", None)
    [after] = run("groups", "describe", group)
    assert after["members"] == []


def test_a_transaction_is_terminated(run: Run, broker: Broker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, "x", partition=0)
    producer.flush()
    assert run("transactions", "terminate", topic)["was"] == "Ongoing"
    assert run("transactions", "describe", topic)["state"] in ("Empty", "CompleteAbort")
    [tp, _] = run("records", "offsets", topic, "--committed")
    assert tp["latest"] == RECORDS_COUNT + 2  # the aborted record and the marker


def test_brokers_and_their_apis_are_listed(run: Run, broker: Broker) -> None:
    nodes = sorted(broker.nodes)
    listed = run("brokers", "list", "--fenced")
    assert [(each["broker"], each["fenced"]) for each in listed] == [(node_id, False) for node_id in nodes]
    status = run("cluster", "status")
    assert (status["healthy"], status["cluster_id"] != "", status["offline_partitions"]) == (True, True, 0)
    live = [(each["broker"], each["state"], each["log_bytes"] >= 0) for each in status["brokers"]]
    assert live == [(node_id, "live", True) for node_id in nodes]
    versions = {each["api"]: (each["first"], each["last"]) for each in run("brokers", "api-versions")}
    assert versions["CreateTopics"] == (2, 7)


def test_started_changes_are_awaited(run: Run, broker: Broker, topic: str) -> None:
    node_id = str(broker.node_id)
    moved = run("reassignments", "start", f"{topic}={node_id}", "--wait", "30")
    assert [each["error"] for each in moved] == [None, None]
    [described] = run("log-dirs", "describe", topic, "--broker", node_id)
    move = ("log-dirs", "move", described["directory"], topic, "--broker", node_id, "--wait", "30")
    assert {each["error"] for each in run(*move)} == {None}
    assert run("topics", "delete", topic, "--wait", "30") == [{"topic": topic, "error": None}]


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (("topics", "describe", "nope"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("topics", "partitions", "nope"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("topics", "delete", "nope"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("records", "delete", "nope:0=1"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("records", "epoch-ends", "nope:0", "--epoch", "0"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("configs", "set", "topic", "nope", "retention.ms=1"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("configs", "replace", "topic", "nope", "retention.ms=1"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("configs", "get", "broker", "77"), "BROKER_NOT_AVAILABLE"),
        (("groups", "describe", "nope"), "GROUP_ID_NOT_FOUND"),
        (("groups", "offsets", "nope"), "GROUP_ID_NOT_FOUND"),
        (("groups", "delete", "nope"), "GROUP_ID_NOT_FOUND"),
        (("transactions", "describe", "nope"), "TRANSACTIONAL_ID_NOT_FOUND"),
        (("transactions", "terminate", "nope"), "TRANSACTIONAL_ID_NOT_FOUND"),
        (("users", "list", "nope"), "RESOURCE_NOT_FOUND"),
        (("users", "remove", "nope"), "RESOURCE_NOT_FOUND"),
        (("brokers", "unregister", "77"), "BROKER_ID_NOT_REGISTERED"),
        (("log-dirs", "describe", "--broker", "77"), "BROKER_NOT_AVAILABLE"),
        (("quorum", "remove-voter", *STRANGER), "VOTER_NOT_FOUND"),
    ],
)
def test_a_missing_resource_is_exit_code_3(
    call: Callable[..., Result], command: tuple[str, ...], error: str
) -> None:
    result = call(*command)
    assert (result.exit_code, json.loads(result.stderr)["error"]) == (3, error), result.output


#: Apache Kafka connects to a new voter; Barnabas's quorum is static.
NO_VOTER = {"REQUEST_TIMED_OUT", "UNSUPPORTED_VERSION", "VOTER_NOT_FOUND"}


@pytest.mark.parametrize("command", ["add-voter", "update-voter"])
def test_an_unreachable_voter_is_not_added(call: Callable[..., Result], command: str) -> None:
    result = call("quorum", command, *STRANGER, "CONTROLLER=127.0.0.1:1")
    assert result.exit_code in (1, 3), result.output
    assert json.loads(result.stderr)["error"] in NO_VOTER
