"""Kafka's tools on committed offsets: described, reset, deleted, and printed from their topic."""

import json
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from interop.brokers import Broker
from interop.reference import tool

WAIT_S = 30.0
RECORDS_COUNT = 10


class Groups:
    """Runs kafka-consumer-groups against the broker under test."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def __call__(self, *arguments: str | Path) -> str:
        done = tool("kafka-consumer-groups", "--bootstrap-server", self._bootstrap, *arguments, check=False)
        return done.stdout + done.stderr

    def offset(self, group: str, topic: str) -> tuple[int, int]:
        """Return the committed offset of the topic's only partition, and the lag."""
        rows = [line.split() for line in self("--describe", "--group", group, "--offsets").splitlines()]
        [row] = [row for row in rows if row[:3] == [group, topic, "0"]]
        return int(row[3]), int(row[5])


@pytest.fixture
def groups(broker: Broker) -> Groups:
    return Groups(broker.bootstrap)


@pytest.fixture
def group(broker: Broker, topic: str) -> str:
    """Create a group without members that has committed offset 4 of a topic with ten records."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS_COUNT):
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(WAIT_S) == 0
    name = f"of-{topic}"
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": name})
    committed = consumer.commit(offsets=[TopicPartition(topic, 0, 4, metadata="by hand")], asynchronous=False)
    assert [each.error for each in committed] == [None]
    consumer.close()
    return name


def test_a_group_is_listed_and_described(groups: Groups, group: str, topic: str) -> None:
    assert group in groups("--list").splitlines()
    assert groups.offset(group, topic) == (4, 6)
    assert "Empty" in groups("--describe", "--group", group, "--state")
    assert "has no active members" in groups("--describe", "--group", group, "--members")


@pytest.mark.parametrize(
    ("where", "offset"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 10),
        (["--to-offset", "7"], 7),
        (["--shift-by", "-3"], 1),
        (["--to-datetime", "2001-01-01T00:00:00.000"], 0),
    ],
)
def test_offsets_are_reset(groups: Groups, group: str, topic: str, where: list[str], offset: int) -> None:
    arguments = ["--reset-offsets", "--group", group, "--topic", topic, *where]
    groups(*arguments, "--dry-run")
    assert groups.offset(group, topic) == (4, 6)
    groups(*arguments, "--execute")
    assert groups.offset(group, topic) == (offset, RECORDS_COUNT - offset)


def test_offsets_and_groups_are_deleted(groups: Groups, group: str, topic: str) -> None:
    output = groups("--delete-offsets", "--group", group, "--topic", topic)
    assert "Successful" in output, output
    rows = [line.split()[:2] for line in groups("--describe", "--group", group, "--offsets").splitlines()]
    assert [group, topic] not in rows
    output = groups("--delete", "--group", group)
    assert "was successful" in output, output
    assert group not in groups("--list").splitlines()


def test_a_group_without_an_offset_starts_at_the_offset_set_by_the_tool(
    broker: Broker, groups: Groups, group: str, topic: str
) -> None:
    """A consumer continues at the tool's offset."""
    groups("--reset-offsets", "--group", group, "--topic", topic, "--to-offset", "8", "--execute")
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    deadline_s = time.monotonic() + WAIT_S
    values: list[str] = []
    while len(values) < 2 and time.monotonic() < deadline_s:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            values.append((message.value() or b"").decode())
    consumer.close()
    assert values == ["8", "9"]
    assert groups.offset(group, topic) == (10, 0)


def test_kafkas_formatter_prints_committed_offsets(broker: Broker, group: str, topic: str) -> None:
    printed = tool(
        "kafka-console-consumer",
        *["--bootstrap-server", broker.bootstrap, "--topic", "__consumer_offsets", "--from-beginning"],
        *["--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"],
        *["--timeout-ms", "5000"],
        check=False,
    ).stdout
    decoder, position, found = json.JSONDecoder(), 0, []
    while position < len(printed.rstrip()):
        document, position = decoder.raw_decode(printed, position)
        if document["key"]["data"]["group"] == group:
            found.append((document["key"]["data"], document["value"]))
    [(key, value)] = found
    assert key == {"group": group, "topic": topic, "partition": 0}
    assert value["version"] == 4
    data = value["data"]
    text = data["metadata"].rstrip("\0")  # confluent-kafka sends C's end of string along
    assert (data["offset"], data["leaderEpoch"], text) == (4, -1, "by hand")
    assert abs(data["commitTimestamp"] / 1_000 - time.time()) < 600
