"""The moves planned by the job `usage`: executed by Kafka's tool on Barnabas, and by our commands on Apache Kafka."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from interop.brokers import Broker, free_ports
from interop.reference import tool

from barnabas.base.ids import uuid_to_text
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.blocking import BlockingClient
from barnabas.client.core.metadata import TopicInfo
from interop import reference
from support.moved_replicas import (
    ANY_DIRECTORY,
    RECORDS_COUNTS,
    carry_out,
    fill,
    homes,
    planned,
    two_directories,
)
from support.source_rows import consumed_rows
from support.waiting import until

TOPIC = "lopsided"
FIRST, SECOND = 1, 2


def test_kafkas_tool_moves_replicas_between_directories_of_barnabas_as_planned(tmp_path: Path) -> None:
    with two_directories(tmp_path) as broker:
        broker.create_topic(TOPIC, len(RECORDS_COUNTS))
        fill(broker.bootstrap, TOPIC)
        rows, before = consumed_rows(broker.bootstrap, TOPIC), homes(broker.bootstrap, TOPIC)
        plan = planned(broker.bootstrap, TOPIC, tmp_path / "report")
        assert plan is not None
        given = ("--bootstrap-server", broker.bootstrap, "--reassignment-json-file", plan.file)
        tool("kafka-reassign-partitions", *given, "--execute")
        until(lambda: homes(broker.bootstrap, TOPIC) == {**before, **plan.targets})
        verified = tool("kafka-reassign-partitions", *given, "--verify").stdout
        for tp, [home] in plan.targets.items():
            assert f"Reassignment of partition {tp} is completed." in verified
            assert f"Reassignment of replica {tp}-{home.broker} completed successfully." in verified
        assert consumed_rows(broker.bootstrap, TOPIC) == rows


@contextmanager
def second_broker(home: Path, first: Broker) -> Iterator[Broker]:
    """Start another broker of the first one's cluster, which is not a controller."""
    output = dict(
        line.split("=", 1) for line in (first.data_dir.parent / "server.properties").read_text().split()
    )
    [port] = free_ports(1)
    properties = {
        "process.roles": "broker",
        "node.id": str(SECOND),
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.quorum.bootstrap.servers": output["controller.quorum.bootstrap.servers"],
    }
    join(home / "data", first)
    broker = reference.start(home, properties, port)
    try:
        yield broker
    finally:
        broker.kill()


def join(data: Path, first: Broker) -> None:
    """Format a directory for the first one's cluster."""
    lines = (first.data_dir / "meta.properties").read_text().splitlines()
    [cluster] = [line for line in lines if line.startswith("cluster.id=")]
    data.mkdir(parents=True)
    own = ["version=1", cluster, f"node.id={SECOND}", f"directory.id={uuid_to_text(uuid4().bytes)}"]
    (data / "meta.properties").write_text("\n".join([*own, ""]))


@pytest.mark.long
def test_our_commands_move_replicas_between_brokers_of_kafka_as_planned(tmp_path: Path) -> None:
    first = reference.start(tmp_path / "first", {"node.id": str(FIRST)})
    try:
        with second_broker(tmp_path / "second", first), BlockingClient(first.bootstrap) as client:
            until(lambda: len(client.admin.describe_cluster().nodes) == 2)
            on_first = NewTopic(TOPIC, assignments={index: [FIRST] for index in range(len(RECORDS_COUNTS))})
            raise_errors(client.admin.create_topics([on_first]).values())
            fill(first.bootstrap, TOPIC)
            rows, before = consumed_rows(first.bootstrap, TOPIC), homes(first.bootstrap, TOPIC)
            plan = planned(first.bootstrap, TOPIC, tmp_path / "report")
            assert plan is not None
            assert {each for row in plan.partitions for each in row["log_dirs"]} == {ANY_DIRECTORY}
            carry_out(first.bootstrap, plan)
            until(lambda: homes(first.bootstrap, TOPIC) == {**before, **plan.targets})
            [topic] = client.admin.describe_topics([TOPIC]).values()
            assert isinstance(topic, TopicInfo)
            replicas = {each.partition_index: list(each.replicas) for each in topic.partitions}
            moved = {row["partition"]: row["replicas"] for row in plan.partitions}
            assert SECOND in {node for row in moved.values() for node in row}
            assert replicas == {index: moved.get(index, [FIRST]) for index in range(len(RECORDS_COUNTS))}
            assert consumed_rows(first.bootstrap, TOPIC) == rows
    finally:
        first.stop()
