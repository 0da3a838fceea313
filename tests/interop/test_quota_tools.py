"""kafka-configs for quotas, kafka-client-metrics, and a Java producer that pushes metrics."""

import contextlib
import subprocess
import time
import urllib.request
from collections.abc import Iterator

import pytest
from interop.brokers import Broker, consecutive_ports
from interop.reference import java, tool
from interop.targets import BROKERS_COUNT, RUNNING

#: A client requests its subscription when it starts, and pushes one interval later.
PUSHED_TIMEOUT_S = 60.0
INTERVAL_MS = 500


class Tools:
    """Runs a tool against a broker."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def __call__(self, name: str, *arguments: str, check: bool = True) -> str:
        done = tool(name, "--bootstrap-server", self._bootstrap, *arguments, check=check)
        return done.stdout if check else done.stdout + done.stderr


@pytest.fixture
def run(broker: Broker) -> Tools:
    return Tools(broker.bootstrap)


@pytest.mark.parametrize(
    ("entity", "setting", "output"),
    [
        (
            ("--entity-type", "users", "--entity-name", "alice"),
            "producer_byte_rate=1048576",
            "Quota configs for user-principal 'alice' are producer_byte_rate=1048576.0",
        ),
        (
            (
                "--entity-type",
                "users",
                "--entity-name",
                "bob",
                "--entity-type",
                "clients",
                "--entity-default",
            ),
            "request_percentage=12.5",
            "Quota configs for user-principal 'bob', the default client-id are request_percentage=12.5",
        ),
        (
            ("--entity-type", "clients", "--entity-name", "app"),
            "consumer_byte_rate=2048",
            "Quota configs for client-id 'app' are consumer_byte_rate=2048.0",
        ),
        (
            ("--entity-type", "ips", "--entity-name", "10.9.8.7"),
            "connection_creation_rate=50",
            "Quota configs for ip '10.9.8.7' are connection_creation_rate=50.0",
        ),
    ],
    ids=["user", "user and default client", "client", "address"],
)
def test_kafka_configs_sets_describes_and_deletes_quotas(
    run: Tools, entity: tuple[str, ...], setting: str, output: str
) -> None:
    assert "Completed updating" in run("kafka-configs", "--alter", *entity, "--add-config", setting)
    deadline_s = time.monotonic() + 10
    while output not in (found := run("kafka-configs", "--describe", *entity)):
        assert time.monotonic() < deadline_s, found
    run("kafka-configs", "--alter", *entity, "--delete-config", setting.partition("=")[0])
    while output in (found := run("kafka-configs", "--describe", *entity)):
        assert time.monotonic() < deadline_s + 20, found


def test_kafka_configs_reports_the_invalid_quota(run: Tools) -> None:
    entity = ("--entity-type", "users", "--entity-name", "alice")
    printed = run("kafka-configs", "--alter", *entity, "--add-config", "producer_byte_rate=0", check=False)
    assert "producer_byte_rate" in printed


def test_kafka_client_metrics_manages_subscriptions(run: Tools) -> None:
    name = ("--name", "interop")
    run(
        "kafka-client-metrics",
        *["--alter", *name, "--metrics", "org.apache.kafka.producer."],
        *["--interval", "60000", "--match", "client_id=app.*"],
    )
    deadline_s = time.monotonic() + 10
    while "interop" not in run("kafka-client-metrics", "--list"):
        assert time.monotonic() < deadline_s
    described = run("kafka-client-metrics", "--describe", *name)
    for part in ("interval.ms=60000", "match=client_id=app.*", "metrics=org.apache.kafka.producer."):
        assert part in described
    run("kafka-client-metrics", "--delete", *name)
    while "interop" in run("kafka-client-metrics", "--list"):
        assert time.monotonic() < deadline_s + 20


@contextlib.contextmanager
def perf_producer(bootstrap: str, topic: str) -> Iterator[None]:
    """Run Kafka's own producer with a hundred records per second until the block ends."""
    command = java(
        "org.apache.kafka.tools.ProducerPerformance",
        *["--topic", topic, "--num-records", "1000000", "--record-size", "100", "--throughput", "100"],
        *["--bootstrap-server", bootstrap, "--command-property", "client.id=interop-perf"],
    )
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


def test_metrics_pushed_by_a_java_producer_are_in_the_brokers_metrics() -> None:
    port = consecutive_ports(BROKERS_COUNT)  # those of the other brokers count up
    with RUNNING["barnabas"]({"barnabas.metrics.listener": f"127.0.0.1:{port}"}) as broker:
        run = Tools(broker.bootstrap)
        arguments = ["--metrics", "*", "--interval", str(INTERVAL_MS)]
        run("kafka-client-metrics", "--alter", "--name", "all", *arguments)
        run("kafka-topics", "--create", "--topic", "output")
        deadline_s = time.monotonic() + PUSHED_TIMEOUT_S
        with perf_producer(broker.bootstrap, "output"):
            while not (lines := _sums(port)):
                assert time.monotonic() < deadline_s
                time.sleep(INTERVAL_MS / 1000)
    assert any('client_software_name="apache-kafka-java"' in line for line in lines)
    assert all('client_id="interop-perf"' in line for line in lines)


def _sums(first_port: int) -> list[str]:
    """Return the producer's counters of sent records; it pushes them to one of the brokers."""
    lines: list[str] = []
    for port in range(first_port, first_port + BROKERS_COUNT):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            lines += answer.read().decode().splitlines()
    expected = 'metric="org.apache.kafka.producer.record.send.total"'
    return [line for line in lines if line.startswith("barnabas_client_sum_total{") and expected in line]
