"""A real client pushes metrics, and the broker's metrics show them."""

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
    """Return the lines of /metrics that clients have pushed."""
    with urllib.request.urlopen(f"http://127.0.0.1:{kafka.server.metrics_port}/metrics", timeout=10) as page:
        lines: list[str] = page.read().decode().splitlines()
    return [
        line for line in lines if line.startswith(("barnabas_client_gauge{", "barnabas_client_sum_total{"))
    ]


@pytest.mark.kafka_settings({"barnabas.metrics.listener": "127.0.0.1:0"})
def test_pushed_producer_metrics_are_exposed_with_the_client_id(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    edits = [AlterConfigOp("metrics", OpType.SET, "*"), AlterConfigOp("interval.ms", OpType.SET, "100")]
    kafka.client.admin.alter_configs({ALL: edits})
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "client.id": "teller"})
    producer.produce("t", b"x")
    deadline_s = time.monotonic() + TIMEOUT_S
    while not (pushed := client_lines(kafka)):
        assert time.monotonic() < deadline_s
        producer.poll(0.05)
    assert all('client_id="teller"' in line for line in pushed)
    assert any('metric="org.apache.kafka.producer.connection.creation.total"' in line for line in pushed)
    producer.flush(TIMEOUT_S)


def test_a_client_logs_nothing_about_telemetry_without_a_receiver(kafka: EmbeddedBroker) -> None:
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
    assert kafka.server.broker.client_telemetry.statistics()["instances_count"] == 0
