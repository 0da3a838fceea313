"""Apache Kafka starts on logs that Barnabas has written and compacted, including those of coordinators."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from interop.brokers import Broker

from barnabas.base import ids
from barnabas.client.admin.offsets import EARLIEST
from barnabas.client.blocking import BlockingClient
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.wire.isolation import Isolation
from interop import candidate, reference
from support.waiting import until

PARTITIONS_COUNT = 2
TOPICS = ("compacted", "__consumer_offsets", "__transaction_state")
PARTITIONS = [ids.TopicPartition(topic, index) for topic in TOPICS for index in range(PARTITIONS_COUNT)]
SMALL = {"internal.segment.bytes": "2000", "delete.retention.ms": "0"}
CONFIGS = {"cleanup.policy": "compact", **SMALL}
SETTINGS = {
    "node.id": "1",
    "offsets.topic.num.partitions": str(PARTITIONS_COUNT),
    "transaction.state.log.num.partitions": str(PARTITIONS_COUNT),
    "group.initial.rebalance.delay.ms": "0",
}
CLEANS = {"log.cleaner.backoff.ms": "20", "log.cleaner.min.cleanable.ratio": "0.01"}
CLEANS_NOT = {"log.cleaner.backoff.ms": "3600000", "log.cleaner.min.cleanable.ratio": "1.0"}
#: Names of files in a partition's directory that identify the cluster.
OF_THE_CLUSTER = "partition.metadata"
ROUNDS_COUNT = 60
WAIT_S = 30


def fill(broker: Broker) -> None:
    """Write keys and tombstones in and out of transactions; a group commits offsets itself and in transactions."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic("compacted", PARTITIONS_COUNT, 1, config=CONFIGS)])["compacted"].result()
    plain = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": "t", "linger.ms": 0}
    transactional = Producer(settings)
    transactional.init_transactions(WAIT_S)
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "enable.auto.commit": False})
    reader.committed([TopicPartition("compacted", 0)], WAIT_S)
    for topic in TOPICS[1:]:
        edits = [AlterConfigOp(name, OpType.SET, value) for name, value in SMALL.items()]
        with BlockingClient(broker.bootstrap) as client:
            client.admin.alter_configs({Resource(ResourceKind.TOPIC, topic): edits})
    for number in range(ROUNDS_COUNT):
        index = number % PARTITIONS_COUNT
        plain.produce("compacted", None if number % 7 == 0 else str(number), str(number % 5), index)
        plain.flush()
        transactional.begin_transaction()
        transactional.produce("compacted", f"in {number}", f"key {number % 9}", index)
        tp = TopicPartition("compacted", index, number)
        transactional.send_offsets_to_transaction([tp], reader.consumer_group_metadata())
        if number == ROUNDS_COUNT - 1:
            transactional.flush()  # which stays open
        elif number % 4 == 0:
            transactional.abort_transaction(WAIT_S)
        else:
            transactional.commit_transaction(WAIT_S)
            reader.commit(offsets=[TopicPartition("compacted", index, number)], asynchronous=False)
    reader.close()


def wait_until_clean(data_dir: Path) -> None:
    """Wait until every partition with compactable segments is clean up to its active segment."""
    checkpoint = data_dir / "cleaner-offset-checkpoint"

    def is_clean() -> bool:
        lines = checkpoint.read_text().splitlines() if checkpoint.exists() else []
        return all(_end(data_dir, tp) in ("", *lines) for tp in PARTITIONS)

    until(is_clean)


def _end(data_dir: Path, tp: ids.TopicPartition) -> str:
    """Return the checkpoint line of a fully cleaned log; empty if it has only one segment."""
    segments = sorted((data_dir / f"{tp.topic}-{tp.partition}").glob("*.log"))
    return f"{tp.topic} {tp.partition} {int(segments[-1].stem)}" if len(segments) > 1 else ""


def records(broker: Broker, tp: ids.TopicPartition, isolation: Isolation) -> list[Any]:
    with (
        BlockingClient(broker.bootstrap) as client,
        client.consumer({tp: EARLIEST}, stop_at_end=True, isolation=isolation) as reader,
    ):
        return [(each.offset, each.timestamp_ms, each.key, each.value) for each in reader]


def contents(broker: Broker) -> dict[str, Any]:
    """Return every record, the committed offsets, and the transaction's state."""
    found: dict[str, Any] = {}
    for tp in PARTITIONS:
        for isolation in Isolation:
            found[f"{tp} {isolation.name}"] = records(broker, tp, isolation)
    with BlockingClient(broker.bootstrap) as client:
        offsets = client.groups.offsets("g")
        found["offsets"] = {tp: (each.offset, each.metadata) for tp, each in offsets.items()}
        transaction = client.transactions.describe("t")
        found["transaction"] = (transaction.state, transaction.producer_id, transaction.producer_epoch)
    return found


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Return a compacted log directory of Barnabas, and its records."""
    broker = candidate.start(tmp_path_factory.mktemp("barnabas"), SETTINGS | CLEANS)
    try:
        fill(broker)
        wait_until_clean(broker.data_dir)
        found = contents(broker)
    finally:
        broker.stop()
    return broker.data_dir, found


@pytest.fixture(params=["stop", "kill"])
def kafka(
    ours: tuple[Path, dict[str, Any]], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Broker]:
    """Start Apache Kafka with the same topics on our logs, which it recovers after a kill."""
    broker = reference.start(tmp_path, SETTINGS | CLEANS_NOT | reference.SHORT_SESSION)
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        made = [NewTopic("compacted", PARTITIONS_COUNT, 1, config=CONFIGS)]
        admin.create_topics(made)["compacted"].result()
        with BlockingClient(broker.bootstrap) as client:
            until(lambda: client.groups.offsets("g") == {})
            Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "t"}).init_transactions(
                WAIT_S
            )
        getattr(broker, request.param)()
        replace_logs(ours[0], broker.data_dir, with_checkpoints=request.param == "stop")
        broker.restart()
        yield broker
    finally:
        broker.stop()


def replace_logs(ours: Path, kafkas: Path, *, with_checkpoints: bool) -> None:
    for tp in PARTITIONS:
        name = f"{tp.topic}-{tp.partition}"
        for path in (kafkas / name).iterdir():
            if path.name != OF_THE_CLUSTER:
                path.unlink()
        for path in (ours / name).iterdir():
            if path.name != OF_THE_CLUSTER:
                shutil.copy(path, kafkas / name)
    for path in kafkas.glob("*-checkpoint"):
        path.unlink()
    for path in ours.glob("*-checkpoint") if with_checkpoints else ():
        shutil.copy(path, kafkas)


def test_apache_kafka_serves_logs_that_barnabas_has_compacted(
    ours: tuple[Path, dict[str, Any]], kafka: Broker
) -> None:
    _, expected = ours
    for topic in TOPICS:  # at least one record of each was written per round
        left = sum(len(expected[f"{tp} READ_UNCOMMITTED"]) for tp in PARTITIONS if tp.topic == topic)
        assert 0 < left < ROUNDS_COUNT, topic
    assert expected["offsets"]
    assert expected["transaction"][0] == "Ongoing"
    assert contents(kafka) == expected
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "t"})
    producer.init_transactions(WAIT_S)  # completes its predecessor's transaction
