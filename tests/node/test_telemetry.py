"""A real client tells how it is, and the broker's metrics show it."""

import logging
import time
import urllib.request

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.testing import EmbeddedBroker
from support.waiting import until

ALL = Resource(ResourceKind.CLIENT_METRICS, "all")
TIMEOUT_S = 20


def client_lines(kafka: EmbeddedBroker) -> list[str]:
    """The lines of /metrics that clients have told."""
    with urllib.request.urlopen(f"http://127.0.0.1:{kafka.server.metrics_port}/metrics", timeout=10) as page:
        lines: list[str] = page.read().decode().splitlines()
    return [
        line for line in lines if line.startswith(("barnabas_client_gauge{", "barnabas_client_sum_total{"))
    ]


@pytest.mark.kafka_settings({"barnabas.metrics.listener": "127.0.0.1:0"})
def test_what_a_producer_pushes_is_in_the_metrics_under_its_name(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    edits = [AlterConfigOp("metrics", OpType.SET, "*"), AlterConfigOp("interval.ms", OpType.SET, "100")]
    kafka.client.admin.alter_configs({ALL: edits})
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "client.id": "teller"})
    producer.produce("t", b"x")
    deadline_s = time.monotonic() + TIMEOUT_S
    while not (told := client_lines(kafka)):
        assert time.monotonic() < deadline_s
        producer.poll(0.05)
    assert all('client_id="teller"' in line for line in told)
    assert any('metric="org.apache.kafka.producer.connection.creation.total"' in line for line in told)
    producer.flush(TIMEOUT_S)


def test_a_client_prints_nothing_about_telemetry_that_nothing_consumes(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    logged: list[logging.LogRecord] = []
    logger = logging.Logger("librdkafka")
    logger.addFilter(lambda record: logged.append(record) or False)
    producer = Producer({"bootstrap.servers": kafka.bootstrap}, logger=logger)
    producer.produce("t", b"x")
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"},
        logger=logger,
    )
    consumer.subscribe(["t"])
    until(lambda: consumer.poll(0.05))
    consumer.close()
    producer.poll(0)
    assert [record.getMessage() for record in logged] == []
    assert kafka.server.node.client_telemetry.statistics()["instances_count"] == 0
