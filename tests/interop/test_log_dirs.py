"""Kafka's tools move replicas between our log directories, and Kafka continues with replicas that we have moved."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.brokers import Broker
from interop.reference import tool
from interop.targets import START_ONE

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.model import NewTopic
from barnabas.client.admin.offsets import EARLIEST
from barnabas.client.blocking import BlockingClient
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from interop import candidate, reference
from support.waiting import until

T0 = TopicPartition("t", 0)
WAIT_S = 60
THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"


def settings(home: Path) -> dict[str, str]:
    return {"node.id": "1", "log.dirs": f"{home / 'data'},{home / 'more'}"}


@pytest.fixture
def running(target: str, tmp_path: Path) -> Iterator[Broker]:
    """Run the broker under test with two log directories, `data` and `more`."""
    broker = START_ONE[target](tmp_path, settings(tmp_path))
    yield broker
    broker.stop()


def produce(bootstrap: str, *values: int) -> None:
    with BlockingClient(bootstrap) as client, client.producer() as producer:
        sent = [producer.send("t", str(value).zfill(1000).encode(), partition=0) for value in values]
        assert all(each.result(WAIT_S).offset >= 0 for each in sent)


def values(bootstrap: str) -> list[int]:
    with BlockingClient(bootstrap) as client, client.consumer({T0: EARLIEST}, stop_at_end=True) as consumer:
        return [int(record.value or b"") for record in consumer]


def where(bootstrap: str) -> dict[str, bool]:
    """Return the last component of a directory's path -> whether its replica is a future one."""
    with BlockingClient(bootstrap) as client:
        found = client.admin.describe_log_dirs(1, [T0])
    return {Path(each.path).name: each.replicas[T0].is_future for each in found if T0 in each.replicas}


def make_topic(bootstrap: str) -> None:
    with BlockingClient(bootstrap) as client:
        client.admin.create_topics([NewTopic("t", 1)])
    until(lambda: len(where(bootstrap)) == 1)


def the_other(directory: str) -> str:
    return "more" if directory == "data" else "data"


def throttle(bootstrap: str, bytes_per_second: str) -> None:
    move_request = {
        Resource(ResourceKind.BROKER, ""): [AlterConfigOp(THROTTLE, OpType.SET, bytes_per_second)]
    }
    with BlockingClient(bootstrap) as client:
        assert list(client.admin.alter_configs(move_request).values()) == [None]


def move(bootstrap: str, directory: Path) -> None:
    with BlockingClient(bootstrap) as client:
        assert client.admin.alter_replica_log_dirs(1, {T0: str(directory)}) == {T0: None}


def test_kafkas_tools_move_a_replica_and_show_its_directory(running: Broker, tmp_path: Path) -> None:
    make_topic(running.bootstrap)
    produce(running.bootstrap, *range(100))
    [start] = where(running.bootstrap)
    moved = {"topic": "t", "partition": 0, "replicas": [1], "log_dirs": [str(tmp_path / the_other(start))]}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [moved]}))
    address = ("--bootstrap-server", running.bootstrap)
    tool("kafka-reassign-partitions", *address, "--reassignment-json-file", plan, "--execute")
    until(lambda: where(running.bootstrap) == {the_other(start): False})
    verified = tool("kafka-reassign-partitions", *address, "--reassignment-json-file", plan, "--verify")
    assert "Reassignment of replica t-0-1 completed successfully." in verified.stdout
    printed = tool("kafka-log-dirs", *address, "--describe", "--topic-list", "t").stdout
    [brokers] = [json.loads(line)["brokers"] for line in printed.splitlines() if line.startswith("{")]
    found = {each["logDir"]: each["partitions"] for each in brokers[0]["logDirs"]}
    assert found[str(tmp_path / start)] == []
    [replica] = found[str(tmp_path / the_other(start))]
    assert (replica["partition"], replica["offsetLag"], replica["isFuture"]) == ("t-0", 0, False)
    assert replica["size"] > 100_000
    assert values(running.bootstrap) == list(range(100))


@pytest.mark.parametrize("finished", [True, False])
def test_kafka_continues_with_a_replica_that_barnabas_moves(tmp_path: Path, finished: bool) -> None:
    kafka = reference.start(tmp_path, settings(tmp_path))
    try:
        make_topic(kafka.bootstrap)
        produce(kafka.bootstrap, *range(1000))
        [start] = where(kafka.bootstrap)
    finally:
        kafka.stop()
    broker = candidate.start(tmp_path, settings(tmp_path))
    try:
        produce(broker.bootstrap, *range(1000, 1100))
        if not finished:
            throttle(broker.bootstrap, "50000")
        move(broker.bootstrap, tmp_path / the_other(start))
        if finished:
            until(lambda: where(broker.bootstrap) == {the_other(start): False})
        produce(broker.bootstrap, *range(1100, 1200))
    finally:
        broker.stop()
    futures = list(tmp_path.glob("*/t-0.*-future"))
    assert len(futures) == (0 if finished else 1)
    kafka = reference.start(tmp_path, settings(tmp_path))
    try:
        until(lambda: where(kafka.bootstrap) == {the_other(start): False})
        assert values(kafka.bootstrap) == list(range(1200))
        produce(kafka.bootstrap, 1200)
        assert values(kafka.bootstrap)[-1] == 1200
    finally:
        kafka.stop()
