"""`barnabas produce` against a broker that rejects records."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from barnabas.cli.main import app
from barnabas.testing import EmbeddedBroker

Produce = Callable[..., Result]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker({"log.dirs": str(tmp_path_factory.mktemp("data"))}) as running:
        yield running


@pytest.fixture
def produce(broker: EmbeddedBroker, tmp_path: Path) -> Produce:
    """Return a function that produces lines from a file."""

    def invoke(topic: str, lines: str, *arguments: str) -> Result:
        file = tmp_path / "lines"
        file.write_text(lines)
        command = ["produce", topic, "--file", str(file), *arguments]
        return CliRunner().invoke(app, command, env={"BARNABAS_BOOTSTRAP": broker.bootstrap})

    return invoke


def values(broker: EmbeddedBroker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_lines_without_a_key_are_reported_and_the_others_arrive_in_order(
    broker: EmbeddedBroker, produce: Produce, codec: str
) -> None:
    topic = f"compacted-{codec}"
    broker.create_topic(topic, partitions=1, configs={"cleanup.policy": "compact"})
    result = produce(topic, "a:1\nplain\nb:2\nc:3\nlast\n", "-K", ":", "-z", codec)
    assert result.exit_code == 1
    assert "error: lines 2, 5: INVALID_RECORD" in result.stderr
    assert result.stderr.rstrip().endswith("error: 2 of 5 lines were not delivered")
    assert values(broker, topic) == [b"1", b"2", b"3"]


def test_json_output_has_line_numbers(broker: EmbeddedBroker, produce: Produce) -> None:
    broker.create_topic("keyed", partitions=1, configs={"cleanup.policy": "compact"})
    result = produce("keyed", "plain\na:1\n", "-K", ":", "--json")
    printed: dict[str, Any] = json.loads(result.stdout)
    assert (printed["records"], printed["failed"]) == (1, 1)
    refused, summary = [json.loads(line) for line in result.stderr.splitlines()]
    assert (refused["error"], refused["lines"]) == ("INVALID_RECORD", [1])
    assert (summary["error"], result.exit_code) == ("FAILED", 1)


def test_only_the_record_with_an_invalid_timestamp_fails(broker: EmbeddedBroker) -> None:
    broker.create_topic("late", partitions=1, configs={"message.timestamp.before.max.ms": "3600000"})
    with broker.client.producer(linger_ms=60_000) as producer:
        old, new = producer.send("late", b"old", timestamp_ms=1), producer.send("late", b"new")
        producer.flush()
    assert "INVALID_TIMESTAMP" in str(old.exception())
    assert new.result().offset == 0


def test_a_line_that_is_too_large_does_not_stop_the_others(broker: EmbeddedBroker, produce: Produce) -> None:
    broker.create_topic("small", partitions=1, configs={"max.message.bytes": "1000"})
    result = produce("small", f"1\n{'x' * 2_000}\n3\n")
    assert (result.exit_code, "line 2: MESSAGE_TOO_LARGE" in result.stderr) == (1, True)
    assert values(broker, "small") == [b"1", b"3"]
