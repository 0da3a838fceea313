"""Kafka's own command-line tools against the broker."""

import json
import time
from pathlib import Path

import pytest
from interop.brokers import Broker
from interop.clients import Client
from interop.reference import tool


@pytest.fixture
def run(broker: Broker) -> "Run":
    return Run(broker.bootstrap)


class Run:
    """Runs a tool against the broker under test."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def __call__(self, name: str, *arguments: str | Path) -> str:
        return tool(name, "--bootstrap-server", self._bootstrap, *arguments).stdout

    def failing(self, name: str, *arguments: str | Path) -> str:
        """Return the complete output of a run that must fail."""
        done = tool(name, "--bootstrap-server", self._bootstrap, *arguments, check=False)
        assert done.returncode != 0
        return done.stdout + done.stderr


def fill(helper: Client, topic: str, count: int = 10) -> None:
    start_ms = (int(time.time()) - 3_600) * 1_000
    records = [{"key": None, "value": str(number), "timestamp": start_ms + number} for number in range(count)]
    helper.do("produce", topic=topic, partition=0, records=records, codec="none", idempotent=True)


def test_kafka_topics_creates_describes_alters_lists_and_deletes(run: Run, absent: str) -> None:
    created = run(
        "kafka-topics",
        *["--create", "--topic", absent, "--partitions", "3", "--replication-factor", "1"],
        *["--config", "retention.ms=60000"],
    )
    assert f"Created topic {absent}." in created
    described = run("kafka-topics", "--describe", "--topic", absent)
    assert "PartitionCount: 3" in described
    assert "ReplicationFactor: 1" in described
    assert "retention.ms=60000" in described
    run("kafka-topics", "--alter", "--topic", absent, "--partitions", "5")
    assert "PartitionCount: 5" in run("kafka-topics", "--describe", "--topic", absent)
    assert absent in run("kafka-topics", "--list").splitlines()
    run("kafka-topics", "--delete", "--topic", absent)
    assert absent not in run("kafka-topics", "--list").splitlines()


def test_kafka_topics_reports_that_a_topic_exists(run: Run, topic: str) -> None:
    assert "TopicExistsException" in run.failing("kafka-topics", "--create", "--topic", topic)
    assert run("kafka-topics", "--create", "--if-not-exists", "--topic", topic) == ""


def test_kafka_topics_reports_that_a_topic_is_unknown(run: Run, absent: str) -> None:
    assert absent in run.failing("kafka-topics", "--describe", "--topic", absent)


def test_kafka_topics_reports_the_invalid_config(run: Run, absent: str) -> None:
    printed = run.failing("kafka-topics", "--create", "--topic", absent, "--config", "retention.ms=soon")
    assert "retention.ms" in printed


def test_kafka_get_offsets_prints_every_kind_of_offset(run: Run, topic: str, helper: Client) -> None:
    fill(helper, topic)
    for kind, offset in (("earliest", 0), ("latest", 10), ("max-timestamp", 9), ("earliest-local", 0)):
        printed = run("kafka-get-offsets", "--topic", topic, "--time", kind)
        assert printed.splitlines()[-1] == f"{topic}:0:{offset}", kind


def test_kafka_delete_records_moves_the_low_watermark(
    run: Run, topic: str, helper: Client, tmp_path: Path
) -> None:
    fill(helper, topic)
    expected = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 7}]}
    offsets = tmp_path / "offsets.json"
    offsets.write_text(json.dumps(expected))
    assert "low_watermark: 7" in run("kafka-delete-records", "--offset-json-file", offsets)
    assert helper.do("offsets", topic=topic, partition=0) == {"earliest": 7, "latest": 10}


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_kafka_producer_perf_test_sends_its_records(
    broker: Broker, topic: str, helper: Client, codec: str
) -> None:
    printed = tool(
        "kafka-producer-perf-test",
        *["--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "-1"],
        *["--bootstrap-server", broker.bootstrap, "--command-property", f"compression.type={codec}"],
    ).stdout
    assert "20000 records sent" in printed
    assert helper.do("offsets", topic=topic, partition=0)["latest"] == 20_000


def test_kafka_broker_api_versions_lists_the_apis_of_the_broker(run: Run, broker: Broker) -> None:
    printed = run("kafka-broker-api-versions")
    for node_id, address in broker.nodes.items():
        assert f"{address} (id: {node_id} " in printed
    for api in ("Produce(0):", "Fetch(1):", "ListOffsets(2):", "Metadata(3):", "CreateTopics(19):"):
        assert api in printed


def test_kafka_configs_describes_a_topic_and_the_broker(run: Run, absent: str, broker: Broker) -> None:
    run("kafka-topics", "--create", "--topic", absent, "--config", "retention.ms=60000")
    described = run("kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", absent)
    assert "retention.ms=60000" in described
    every = run(
        "kafka-configs",
        *["--describe", "--all", "--entity-type", "brokers", "--entity-name", str(broker.node_id)],
    )
    assert "message.max.bytes=1048588" in every


def test_the_console_consumer_reads_what_the_console_producer_wrote(
    broker: Broker, run: Run, topic: str
) -> None:
    console = tool(
        "kafka-console-producer",
        *["--bootstrap-server", broker.bootstrap, "--topic", topic],
        standard_input="first\nsecond\n",
    )
    assert console.returncode == 0
    read = run(
        "kafka-console-consumer",
        *["--topic", topic, "--partition", "0", "--offset", "earliest"],
        *["--max-messages", "2", "--timeout-ms", "20000"],
    )
    assert read.splitlines() == ["first", "second"]


def test_the_console_consumer_continues_where_its_group_has_stopped(
    broker: Broker, run: Run, topic: str
) -> None:
    for value in ("first", "second"):
        written = tool(
            "kafka-console-producer",
            *["--bootstrap-server", broker.bootstrap, "--topic", topic],
            standard_input=f"{value}\n",
        )
        assert written.returncode == 0
        read = run(
            "kafka-console-consumer",
            *["--topic", topic, "--group", f"console-of-{topic}", "--from-beginning"],
            *["--max-messages", "1", "--timeout-ms", "20000"],
        )
        assert read.splitlines() == [value]


def test_the_verifiable_consumer_reads_in_a_group(broker: Broker, run: Run, topic: str) -> None:
    written = run("kafka-verifiable-producer", "--topic", topic, "--max-messages", "30")
    assert '"acked":30' in written
    read = run(
        "kafka-verifiable-consumer",
        *["--topic", topic, "--group-id", f"verifiable-of-{topic}", "--max-messages", "30"],
        *["--reset-policy", "earliest", "--assignment-strategy"],
        "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
    )
    consumed = [json.loads(line) for line in read.splitlines()]
    assert sum(each.get("count", 0) for each in consumed if each["name"] == "records_consumed") == 30
