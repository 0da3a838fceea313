"""The job `compact` on a running broker, as a function and as a command."""

import json
from contextlib import nullcontext

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from barnabas.base.ids import TopicPartition
from barnabas.cli.main import app
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.jobs.common import session as running
from pyspark_barnabas.jobs.compact.job import CLEAN, DRY, IMPORTED, compact
from support.confluent_transactions import transact
from support.served_logs import log_of, options_of

CONFIGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "4000",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "1.0",  # the broker's own cleaner has nothing to do
}


def fill(
    broker: EmbeddedBroker, topic: str, *, partitions_count: int = 1
) -> dict[bytes | None, bytes | None]:
    """Write many values for few keys, a tombstone, an aborted and a committed transaction; return each key's last
    value.
    """
    broker.create_topic(topic, partitions_count, CONFIGS)
    for number in range(120):
        broker.produce(
            topic, b"%d" % number + b"x" * 100, key=b"k%d" % (number % 7), partition=number % partitions_count
        )
    transact(broker, topic, f"{topic}-transactions", "ca", key=b"k0")
    return last_values(broker, topic)


def last_values(broker: EmbeddedBroker, topic: str) -> dict[bytes | None, bytes | None]:
    return {record.key: record.value for record in broker.records(topic)}


def records_count(broker: EmbeddedBroker, topic: str) -> int:
    return len(broker.records(topic))


def test_a_topic_is_compacted_while_the_broker_serves_it(
    spark: SparkSession, broker: EmbeddedBroker, topic: str
) -> None:
    expected = fill(broker, topic, partitions_count=2)
    before = records_count(broker, topic)
    dry = compact(spark, options_of(broker, topic), dry_run=True)
    assert [each.state for each in dry] == [DRY, DRY]
    assert records_count(broker, topic) == before

    done = compact(spark, options_of(broker, topic))
    assert [(each.topic, each.partition, each.state, each.why) for each in done] == [
        (topic, 0, IMPORTED, ""),
        (topic, 1, IMPORTED, ""),
    ]
    for found, foretold in zip(done, dry, strict=True):
        assert (found.records_after, found.bytes_after) == (foretold.records_after, foretold.bytes_after)
        assert found.bytes_after < found.bytes_before / 3
        assert found.segments_after < found.segments_before
        assert log_of(broker, TopicPartition(topic, found.partition)).cleaner_offset == found.end_offset
    assert last_values(broker, topic) == expected
    assert records_count(broker, topic) < before / 2
    again = compact(spark, options_of(broker, topic))
    assert {each.state for each in again} == {CLEAN}
    broker.restart(kill=True)
    assert last_values(broker, topic) == expected


def test_the_command_prints_the_expected_sizes(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(broker, topic)
    monkeypatch.setattr(running, "job_session", lambda *_: nullcontext(spark))
    where = ["-b", broker.bootstrap, "-d", str(broker.directory), "-t", topic]
    result = CliRunner().invoke(app, ["jobs", "compact", "--dry-run", "--json", *where])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    [partition] = found["partitions"]
    assert found["dry_run"]
    assert (partition["topic"], partition["state"]) == (topic, "dry run")
    assert partition["bytes_after"] < partition["bytes_before"]
