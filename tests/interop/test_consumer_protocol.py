"""Groups of the consumer protocol (KIP-848): real members, and Kafka's tools."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from interop.brokers import Broker

from interop import reference

WAIT_S = 60
PARTITIONS = 4
RECORDS_COUNT = 20


@pytest.fixture
def topic(broker: Broker, names: Iterator[str]) -> str:
    """Create four partitions with five records each."""
    name = f"{next(names)}-shared"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS_COUNT):
        producer.produce(name, str(number), partition=number % PARTITIONS)
    producer.flush()
    return name


class Members:
    """Consumers that are polled in turns, and the records of each."""

    def __init__(self, broker: Broker, group_id: str) -> None:
        self.broker, self.group_id = broker, group_id
        self.consumers: dict[str, Consumer] = {}
        self.values: dict[str, list[str]] = {}

    def join(self, name: str, topic: str, protocol: str = "consumer", **options: str) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "group.id": self.group_id,
                "group.protocol": protocol,
                "client.id": name,
                "auto.offset.reset": "earliest",
            }
            | {key.replace("_", "."): value for key, value in options.items()}
        )
        consumer.subscribe([topic])
        self.consumers[name] = consumer
        self.values.setdefault(name, [])

    def leave(self, name: str) -> None:
        self.consumers.pop(name).close()

    def poll_until(self, holds: Callable[[], object]) -> None:
        deadline_s = time.monotonic() + WAIT_S
        while not holds():
            assert time.monotonic() < deadline_s, (self.assigned(), self.values)
            for name, consumer in self.consumers.items():
                message = consumer.poll(0.05)
                if message is not None and message.error() is None:
                    self.values[name].append(message.value().decode())

    def assigned(self) -> dict[str, set[int]]:
        return {
            name: {partition.partition for partition in consumer.assignment()}
            for name, consumer in self.consumers.items()
        }

    def share_evenly(self) -> bool:
        """Whether every partition has one member, and the members' counts differ by at most one."""
        shares = list(self.assigned().values())
        total = [index for share in shares for index in share]
        sizes = sorted(map(len, shares))
        return sorted(total) == list(range(PARTITIONS)) and sizes[-1] - sizes[0] <= 1

    def all_values(self) -> list[str]:
        return sorted((value for values in self.values.values() for value in values), key=int)


@pytest.fixture
def members(broker: Broker, names: Iterator[str]) -> Iterator[Members]:
    found = Members(broker, f"{next(names)}-group")
    yield found
    for name in tuple(found.consumers):
        found.leave(name)


def group_type(broker: Broker, group_id: str) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    listed = admin.list_consumer_groups().result()
    [group] = [each for each in listed.valid if each.group_id == group_id]
    return str(group.type.name)


def test_members_share_a_topic_and_read_every_record_once(members: Members, topic: str) -> None:
    members.join("one", topic)
    members.poll_until(lambda: len(members.all_values()) == RECORDS_COUNT)
    assert members.all_values() == [str(number) for number in range(RECORDS_COUNT)]
    members.join("two", topic)
    members.poll_until(members.share_evenly)
    members.leave("one")
    members.poll_until(members.share_evenly)
    assert members.all_values() == [str(number) for number in range(RECORDS_COUNT)]


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_members_choose_the_assignor(members: Members, topic: str, assignor: str) -> None:
    for name in ("one", "two"):
        members.join(name, topic, group_remote_assignor=assignor)
    members.poll_until(members.share_evenly)


def test_a_static_member_returns_to_its_partitions(members: Members, topic: str) -> None:
    for name in ("one", "two"):
        members.join(name, topic, group_instance_id=name)
    members.poll_until(members.share_evenly)
    before = members.assigned()["one"]
    members.leave("one")
    members.join("one", topic, group_instance_id="one")
    members.poll_until(lambda: members.assigned()["one"])
    assert members.assigned()["one"] == before


def test_topics_are_subscribed_by_regex(members: Members, topic: str) -> None:
    members.join("one", f"^{topic[:-1]}.")
    members.poll_until(lambda: members.assigned()["one"] == set(range(PARTITIONS)))


def test_members_migrate_from_the_classic_protocol_while_others_keep_reading(
    broker: Broker, members: Members, topic: str
) -> None:
    members.join("old", topic, "classic", partition_assignment_strategy="range")
    members.poll_until(lambda: len(members.all_values()) == RECORDS_COUNT)
    assert group_type(broker, members.group_id) == "CLASSIC"
    members.join("new", topic)
    members.poll_until(members.share_evenly)
    assert group_type(broker, members.group_id) == "CONSUMER"
    members.leave("new")
    members.poll_until(members.share_evenly)
    assert group_type(broker, members.group_id) == "CLASSIC"
    members.leave("old")
    assert members.all_values() == [str(number) for number in range(RECORDS_COUNT)]


def console_consumer(broker: Broker, group_id: str, topic: str, **properties: str) -> list[str]:
    """Return the records that Kafka's console consumer reads."""
    given = {"group.protocol": "consumer"} | {
        key.replace("_", "."): value for key, value in properties.items()
    }
    arguments: list[Any] = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--group", group_id]
    for key, value in given.items():
        arguments += ["--command-property", f"{key}={value}"]
    result = reference.tool(
        "kafka-console-consumer", *arguments, "--from-beginning", "--max-messages", str(RECORDS_COUNT)
    )
    return sorted(result.stdout.split(), key=int)


@pytest.mark.parametrize("properties", [{}, {"group_remote_assignor": "range"}, {"group_instance_id": "i"}])
def test_the_java_consumer_reads_in_a_group(
    broker: Broker, topic: str, names: Iterator[str], properties: dict[str, str]
) -> None:
    group_id = f"{next(names)}-java"
    read = console_consumer(broker, group_id, topic, **properties)
    assert read == [str(number) for number in range(RECORDS_COUNT)]
    assert group_type(broker, group_id) == "CONSUMER"


def test_tools_show_the_group_and_its_members(broker: Broker, members: Members, topic: str) -> None:
    members.join("one", topic)
    members.poll_until(members.share_evenly)
    where = ["--bootstrap-server", broker.bootstrap]
    listed = reference.tool("kafka-groups", *where, "--list", "--consumer").stdout
    [row] = [line.split() for line in listed.splitlines() if line.startswith(members.group_id + " ")]
    assert row[1:] == ["Consumer", "consumer"]
    group = [*where, "--describe", "--group", members.group_id]
    state = reference.tool("kafka-consumer-groups", *group, "--state").stdout
    assert "uniform" in state
    assert "Stable" in state
    shown = reference.tool("kafka-consumer-groups", *group, "--members", "--verbose").stdout
    assert f"{topic}:0,1,2,3" in shown


def test_a_closed_member_has_committed(broker: Broker, members: Members, topic: str) -> None:
    members.join("one", topic)
    members.poll_until(lambda: len(members.all_values()) == RECORDS_COUNT)
    members.leave("one")
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": members.group_id})
    expected = [TopicPartition(topic, index) for index in range(PARTITIONS)]
    assert [each.offset for each in reader.committed(expected, 10)] == [5] * PARTITIONS
    reader.close()
