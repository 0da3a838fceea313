"""A real client tells how it is, and the broker's metrics show it."""

import time
import urllib.request

import pytest
from confluent_kafka import Producer

from barnabas.config.edits import Edit, Operation
from barnabas.config.resources import Resource, ResourceKind
from barnabas.testing import EmbeddedBroker

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
    edits = [Edit("metrics", Operation.SET, "*"), Edit("interval.ms", Operation.SET, "100")]
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


def test_nobody_pushes_without_a_subscription(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "client.id": "silent"})
    producer.produce("t", b"x")
    assert producer.flush(TIMEOUT_S) == 0
    telemetry = kafka.server.node.client_telemetry
    deadline_s = time.monotonic() + TIMEOUT_S
    while telemetry.statistics()["instances_count"] == 0:
        assert time.monotonic() < deadline_s
        producer.poll(0.05)
    assert telemetry.statistics()["series_count"] == 0
