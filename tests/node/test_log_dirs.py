"""Log directories of a running broker: their replicas, and moves under load."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import KafkaError as BrokerError
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from support.log_dirs import codes, move, partitions, replicas
from support.waiting import until
from support.wire import Wire

WAIT_S = 30
QUEUED_COUNT_MAX = 100  #: records in flight before their acknowledgements
EVERYTHING = DescribeLogDirsRequest(topics=None)
THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """Run a broker with the log directories a and b."""
    with EmbeddedBroker({"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}"}) as running:
        yield running


@pytest.fixture
def describe_log_dirs(broker: EmbeddedBroker) -> Iterator[Wire]:
    with Wire(broker.port) as wire:
        yield wire


def grows(count: Callable[[], int], by: int = 1) -> Callable[[], bool]:
    first = count()
    return lambda: count() >= first + by


def is_at(wire: Wire, *expected: str) -> Callable[[], bool]:
    return lambda: partitions(wire.ask(EVERYTHING)).get(("t", 0)) == list(expected)


def alter(broker: EmbeddedBroker, name: str, key: str, value: str | None) -> None:
    """Set or delete a config of a broker or of all brokers."""
    operation = OpType.DELETE if value is None else OpType.SET
    resource = Resource(ResourceKind.BROKER, name)
    outcomes = broker.client.admin.alter_configs({resource: [AlterConfigOp(key, operation, value)]})
    assert list(outcomes.values()) == [None]


class Traffic:
    """One producer that writes numbers and one consumer that reads them, until stopped."""

    def __init__(self, bootstrap: str) -> None:
        self.read: list[int] = []
        self.acknowledged: list[int] = []
        self.errors: list[KafkaError] = []
        self._stopped = threading.Event()
        self._written = threading.Event()  #: set once no record is in flight
        settings = {"bootstrap.servers": bootstrap, "log_level": 0}
        self._producer = Producer({**settings, "enable.idempotence": True, "linger.ms": 1})
        self._consumer = Consumer({**settings, "group.id": "unused", "enable.auto.commit": False})
        self._consumer.assign([TopicPartition("t", 0, 0)])
        self._threads = [threading.Thread(target=work) for work in (self._write, self._read)]
        for thread in self._threads:
            thread.start()

    def _write(self) -> None:
        number = 0
        while not self._stopped.is_set():
            if number < len(self.acknowledged) + QUEUED_COUNT_MAX:
                self._producer.produce("t", str(number).zfill(200), partition=0, on_delivery=self._delivered)
                number += 1
            self._producer.poll(0.0005)
        assert self._producer.flush(WAIT_S) == 0
        self._written.set()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(error)
        else:
            self.acknowledged.append(int(message.value() or b""))

    def _read(self) -> None:
        while not (self._written.is_set() and self.read[-1:] == self.acknowledged[-1:]):
            message = self._consumer.poll(0.05)
            if message is None:
                continue
            if message.error():
                self.errors.append(message.error())
                return
            self.read.append(int(message.value() or b""))
        self._consumer.close()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(WAIT_S)
            assert not thread.is_alive()


@pytest.mark.parametrize("flush", ["9223372036854775807", "1"])
def test_a_replica_moves_back_and_forth_under_load(
    broker: EmbeddedBroker, describe_log_dirs: Wire, tmp_path: Path, flush: str
) -> None:
    broker.create_topic("t", configs={"flush.messages": flush})
    traffic = Traffic(broker.bootstrap)
    try:
        for to in ("b", "a") * 4:
            until(grows(lambda: len(traffic.acknowledged), by=20))
            assert codes(describe_log_dirs.ask(move(tmp_path / to, "t", 0))) == {("t", 0): "NONE"}
            until(is_at(describe_log_dirs, to))
    finally:
        traffic.stop()
    assert traffic.errors == []
    assert traffic.acknowledged == list(range(len(traffic.acknowledged)))
    assert traffic.read == traffic.acknowledged


def test_a_moves_throttle_can_be_changed_while_it_runs(
    broker: EmbeddedBroker, describe_log_dirs: Wire, tmp_path: Path
) -> None:
    broker.create_topic("t")
    for _ in range(200):
        broker.produce("t", b"x" * 1000)
    alter(broker, "", THROTTLE, "1000")
    describe_log_dirs.ask(move(tmp_path / "b", "t", 0))
    until(lambda: replicas(describe_log_dirs.ask(EVERYTHING))["b"].get(("t", 0), (0,))[0] > 0)
    size_bytes, lag, is_future = replicas(describe_log_dirs.ask(EVERYTHING))["b"]["t", 0]
    assert is_future
    assert 0 < size_bytes < 100_000
    assert 100 < lag < 200
    alter(broker, "", THROTTLE, None)
    until(is_at(describe_log_dirs, "b"))
    assert len(broker.records("t")) == 200


def test_a_move_continues_after_a_stop_or_kill(
    broker: EmbeddedBroker, describe_log_dirs: Wire, tmp_path: Path
) -> None:
    broker.create_topic("t")
    for number in range(300):
        broker.produce("t", b"%d" % number + b"x" * 1000)
    alter(broker, "", THROTTLE, "20000")
    describe_log_dirs.ask(move(tmp_path / "b", "t", 0))
    copied_bytes = 0
    for kill in (True, False, True):
        until(grows(lambda: next(tmp_path.glob("b/t-0.*-future/*.log")).stat().st_size))
        broker.restart(kill=kill)
        with Wire(broker.port) as wire:
            size_bytes, _, is_future = replicas(wire.ask(EVERYTHING))["b"]["t", 0]
        assert is_future
        assert size_bytes > copied_bytes
        copied_bytes = size_bytes
    alter(broker, "", THROTTLE, None)
    with Wire(broker.port) as wire:
        until(is_at(wire, "b"))
    values = [record.value for record in broker.records("t")]
    assert values == [b"%d" % number + b"x" * 1000 for number in range(300)]


def test_a_directory_is_cordoned_and_uncordoned_while_the_broker_runs(
    broker: EmbeddedBroker, describe_log_dirs: Wire, tmp_path: Path
) -> None:
    own = str(broker.server.broker.broker_id)
    alter(broker, own, "cordoned.log.dirs", str(tmp_path / "a"))
    broker.create_topic("t")
    assert [result.is_cordoned for result in describe_log_dirs.ask(EVERYTHING).results] == [True, False]
    assert is_at(describe_log_dirs, "b")()
    assert codes(describe_log_dirs.ask(move(tmp_path / "a", "t", 0))) == {
        ("t", 0): "INVALID_REPLICA_ASSIGNMENT"
    }
    alter(broker, own, "cordoned.log.dirs", "*")
    until(lambda: broker.server.broker.image.brokers[own].cordoned)
    with pytest.raises(BrokerError, match="not cordoned"):
        broker.create_topic("nowhere")
    alter(broker, own, "cordoned.log.dirs", None)
    assert codes(describe_log_dirs.ask(move(tmp_path / "a", "t", 0))) == {("t", 0): "NONE"}
    until(is_at(describe_log_dirs, "a"))
