"""`barnabas groups`, `transactions` and `verify-eos` with real members, producers and applications."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from interop.brokers import Broker
from typer.testing import CliRunner

from barnabas.cli.main import app

Run = Callable[..., Any]
WAIT_S = 40
RECORDS_COUNT = 10


@pytest.fixture
def run(broker: Broker) -> Run:
    """Return a function that runs a command with --json; it returns the output, or the name of the error."""

    def invoke(*arguments: str) -> Any:
        result = CliRunner().invoke(
            app, [*arguments, "--json"], env={"BARNABAS_BOOTSTRAP": broker.bootstrap, "COLUMNS": "300"}
        )
        return json.loads(result.stdout) if result.exit_code == 0 else json.loads(result.stderr)["error"]

    return invoke


@pytest.fixture
def topics(broker: Broker, names: Iterator[str]) -> Callable[[int], str]:
    """Return a function that creates a topic with two partitions and as many records in each."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    producer = Producer({"bootstrap.servers": broker.bootstrap})

    def make(count: int = RECORDS_COUNT) -> str:
        name = next(names)
        admin.create_topics([NewTopic(name, 2, 1)])[name].result()
        for number in range(count):
            for partition in (0, 1):
                producer.produce(name, str(number), partition=partition)
        producer.flush()
        return name

    return make


def consumer(broker: Broker, group: str, protocol: str = "classic", **options: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        | {key.replace("_", "."): value for key, value in options.items()}
    )


def read(member: Consumer, count: int) -> list[Any]:
    """Return that many records."""
    records: list[Any] = []
    deadline_s = time.monotonic() + WAIT_S
    while len(records) < count:
        assert time.monotonic() < deadline_s, f"{len(records)} of {count} records came"
        record = member.poll(0.1)
        if record is not None:
            assert record.error() is None, record.error()
            records.append(record)
    return records


def committed(run: Run, group: str) -> dict[int, tuple[int, int]]:
    """Return partition -> (committed offset, lag)."""
    found = run("groups", "offsets", group)
    return {each["partition"]: (each["committed"], each["lag"]) for each in found}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_an_active_group_is_described_and_reset_after_it_stopped(
    broker: Broker, run: Run, topics: Callable[[], str], protocol: str
) -> None:
    topic = topics()
    group = f"group-of-{topic}"
    member = consumer(broker, group, protocol, client_id="reader")
    member.subscribe([topic])
    read(member, 2 * RECORDS_COUNT)
    member.commit(offsets=[TopicPartition(topic, 0, 4), TopicPartition(topic, 1, 10)], asynchronous=False)

    [listed] = [each for each in run("groups", "list") if each["group_id"] == group]
    assert (listed["type"], listed["state"]) == (protocol, "Stable")
    assert group in {each["group_id"] for each in run("groups", "list", "--type", protocol)}
    assert group not in {each["group_id"] for each in run("groups", "list", "--state", "Empty")}
    [described] = run("groups", "describe", group)
    assert (described["type"], described["state"]) == (protocol, "Stable")
    [found] = described["members"]
    assert (found["client_id"], found["subscription"]) == ("reader", [topic])
    assert [(each["topic"], each["partition"]) for each in found["assignment"]] == [(topic, 0), (topic, 1)]
    assert committed(run, group) == {0: (4, 6), 1: (10, 0)}
    assert run("groups", "delete", group) == "NON_EMPTY_GROUP"
    assert run("groups", "reset-offsets", group, "--to-earliest") == "NON_EMPTY_GROUP"
    member.close()

    assert len(run("groups", "reset-offsets", group, "--to-offset", "7", "--dry-run")) == 2
    assert committed(run, group) == {0: (4, 6), 1: (10, 0)}
    run("groups", "reset-offsets", group, f"{topic}:0", "--to-offset", "99")
    assert committed(run, group) == {0: (10, 0), 1: (10, 0)}
    run("groups", "reset-offsets", group, "--to-earliest")
    assert committed(run, group) == {0: (0, 10), 1: (0, 10)}
    run("groups", "reset-offsets", group, "--to-latest")
    assert committed(run, group) == {0: (10, 0), 1: (10, 0)}
    run("groups", "delete-offsets", group, f"{topic}:0")
    assert committed(run, group) == {0: (None, None), 1: (10, 0)}
    assert [each["error"] for each in run("groups", "delete", group)] == [None]
    assert run("groups", "describe", group) == "GROUP_ID_NOT_FOUND"
    assert run("groups", "delete", group) == "GROUP_ID_NOT_FOUND"


def test_offsets_are_committed_for_a_new_group(broker: Broker, run: Run, topics: Callable[[], str]) -> None:
    topic = topics()
    group = f"group-of-{topic}"
    assert run("groups", "offsets", group) == "GROUP_ID_NOT_FOUND"
    run("groups", "reset-offsets", group, topic, "--to-offset", "3")
    assert committed(run, group) == {0: (3, 7), 1: (3, 7)}
    [listed] = [each for each in run("groups", "list") if each["group_id"] == group]
    assert listed["state"] == "Empty"
    member = consumer(broker, group)
    member.subscribe([topic])
    assert {record.offset() for record in read(member, 14)} == set(range(3, 10))
    member.close()


def transactional(broker: Broker, transactional_id: str) -> Producer:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(WAIT_S)
    return producer


def test_an_open_transaction_is_described(broker: Broker, run: Run, topics: Callable[[int], str]) -> None:
    topic = topics(0)
    name = f"tx-of-{topic}"
    producer = transactional(broker, name)
    producer.begin_transaction()
    producer.produce(topic, "v", partition=1)
    producer.flush()

    assert run("transactions", "list", "--state", "Ongoing", "--pattern", f"{name}.*") == [
        each for each in run("transactions", "list") if each["transactional_id"] == name
    ]
    described = run("transactions", "describe", name)
    assert described["state"] == "Ongoing"
    assert described["partitions"] == [{"topic": topic, "partition": 1}]
    [found] = run("transactions", "producers", f"{topic}:1")
    assert found["transaction_start_offset"] == 0
    assert found["producer_id"] == described["producer_id"]
    assert run("transactions", "abort", f"{topic}:1", "--start-offset", "7") == "INVALID_TXN_STATE"
    assert run("transactions", "abort", f"{topic}:1", "--start-offset", "0") == found
    [found] = run("transactions", "producers", f"{topic}:1")
    assert found["transaction_start_offset"] is None
    assert run("transactions", "describe", f"{name}-too") == "TRANSACTIONAL_ID_NOT_FOUND"


class Copier:
    """An application that copies numbered inputs, five to a transaction, until it is stopped."""

    def __init__(self, broker: Broker, source: str, target: str, *, aborts: bool = False) -> None:
        self._target, self._aborts = target, aborts
        self._producer = transactional(broker, f"copier-of-{source}")
        self._consumer = consumer(broker, f"copiers-of-{source}", isolation_level="read_committed")
        self._consumer.subscribe([source])
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(WAIT_S)
        self._consumer.close()

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            records = self._consumer.consume(5, 0.2)
            if records:
                number += 1
                if self._aborts and number % 3 == 0:
                    self._write(records, f"{number}-aborted")
                    self._producer.abort_transaction()
                self._write(records, str(number))
                partitions = self._consumer.position(self._consumer.assignment())
                metadata = self._consumer.consumer_group_metadata()
                self._producer.send_offsets_to_transaction(partitions, metadata)
                self._producer.commit_transaction()

    def _write(self, records: list[Any], name: str) -> None:
        self._producer.begin_transaction()
        for record in records:
            value = f"{record.value().decode()} {name}/{len(records)}"
            self._producer.produce(self._target, value, partition=record.partition())
        self._producer.flush()


@pytest.mark.parametrize("aborts", [False, True])
def test_a_transactional_copy_is_exactly_once(
    broker: Broker, run: Run, topics: Callable[[int], str], aborts: bool
) -> None:
    source, target = topics(0), topics(0)
    run("verify-eos", "produce", source, "--count", "60")
    copier = Copier(broker, source, target, aborts=aborts)
    found = run("verify-eos", "check", source, target, "--wait", str(WAIT_S))
    copier.stop()
    assert (found["exactly_once"], found["inputs"], found["outputs"]) == (True, 60, 60)
    assert found["transactions"] >= 6


class Careless:
    """Applications that copy without transactions, and are killed once between output and commit."""

    def __init__(self, broker: Broker, source: str, target: str) -> None:
        self._broker, self._source, self._target = broker, source, target
        self._producer = Producer({"bootstrap.servers": broker.bootstrap})

    def run(self, count: int, *, commit_first: bool) -> None:
        """Copy half of the inputs, be killed, and restart."""
        self._copy(count // 2, count // 2 - 5, commit_first=commit_first)
        self._copy(count, count, commit_first=commit_first)
        self._producer.flush()

    def _copy(self, up_to: int, survives: int, *, commit_first: bool) -> None:
        """Copy records; those beyond `survives` are written without a commit, or committed without being written."""
        reader = consumer(self._broker, f"careless-with-{self._source}")
        reader.subscribe([self._source])
        committed = reader.committed([TopicPartition(self._source, each) for each in (0, 1)], WAIT_S)
        done = sum(max(0, tp.offset) for tp in committed)
        for number, record in enumerate(read(reader, up_to - done), done + 1):
            if number <= survives or not commit_first:
                self._producer.produce(self._target, record.value(), partition=record.partition())
            if number <= survives or commit_first:
                reader.commit(record, asynchronous=False)
        reader.close()


@pytest.mark.parametrize(("commit_first", "fault"), [(False, "duplicated"), (True, "lost")])
def test_faults_of_a_copy_without_transactions_are_found(
    broker: Broker, run: Run, topics: Callable[[int], str], commit_first: bool, fault: str
) -> None:
    source, target = topics(0), topics(0)
    run("verify-eos", "produce", source, "--count", "40")
    Careless(broker, source, target).run(40, commit_first=commit_first)
    arguments = ["verify-eos", "check", source, target, "--json"]
    result = CliRunner().invoke(app, arguments, env={"BARNABAS_BOOTSTRAP": broker.bootstrap})
    assert result.exit_code == 1
    faults = {kind: found["count"] for kind, found in json.loads(result.stdout)["faults"].items()}
    assert {kind: count for kind, count in faults.items() if count} == {fault: 5}
