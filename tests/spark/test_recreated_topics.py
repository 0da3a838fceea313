"""Topics recreated under a stream's checkpoint, on a real session over both transports."""

import json
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from barnabas.base.ids import TopicPartition, uuid_to_text
from barnabas.client.core.metadata import TopicInfo
from barnabas.testing import EmbeddedBroker
from support.source_rows import consumed_rows, fill, source_options
from support.streams import Stream
from support.waiting import until

LENIENT = {"failOnDataLoss": "false"}


@pytest.fixture(params=["fetch", "files"])
def stream(
    request: pytest.FixtureRequest, spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> Stream:
    where = {} if request.param == "fetch" else {"transport": "files", "logDirs": str(broker.directory)}
    return Stream(spark, source_options(broker.bootstrap, topic, **where), tmp_path)


def topic_id(broker: EmbeddedBroker, topic: str) -> str:
    found = broker.client.admin.describe_topics([topic])[topic]
    assert isinstance(found, TopicInfo)
    return uuid_to_text(found.topic_id)


def recreate(broker: EmbeddedBroker, topic: str, count: int) -> None:
    """Delete a topic and create it again with `count` records in two partitions."""
    broker.delete_topic(topic)
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, count, 2)


def read_then_recreate(broker: EmbeddedBroker, topic: str, stream: Stream, count: int) -> list[str]:
    """Let a query read 100 records and stop, then recreate the topic; return both topic ids."""
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 100, 2)
    stream.run()
    before = topic_id(broker, topic)
    recreate(broker, topic, count)
    stream.batches.clear()
    return [before, topic_id(broker, topic)]


def test_a_topic_recreated_while_the_query_was_stopped_fails_it(
    broker: EmbeddedBroker, topic: str, stream: Stream
) -> None:
    ids = read_then_recreate(broker, topic, stream, 100)
    for start in (stream.run, lambda: stream.start(processingTime="50 milliseconds").awaitTermination(60)):
        with pytest.raises(StreamingQueryException, match="was deleted and created again") as raised:
            start()
        assert all(part in str(raised.value) for part in (f"'{topic}'", *ids, "failOnDataLoss"))
    assert stream.batches == {}


@pytest.mark.parametrize("count", [40, 100, 400])
def test_with_fail_on_data_loss_false_a_recreated_topic_is_read_from_its_start(
    broker: EmbeddedBroker, topic: str, stream: Stream, count: int
) -> None:
    read_then_recreate(broker, topic, stream, count)
    stream.options |= LENIENT
    stream.run()
    assert stream.rows == consumed_rows(broker.bootstrap, topic)
    fill(broker.bootstrap, topic, 10, 2)
    stream.run()
    assert stream.rows == consumed_rows(broker.bootstrap, topic)


def test_with_a_limit_a_recreated_topic_is_read_in_batches(
    broker: EmbeddedBroker, topic: str, stream: Stream
) -> None:
    read_then_recreate(broker, topic, stream, 400)
    stream.options |= {**LENIENT, "maxOffsetsPerTrigger": "150"}
    stream.run()
    assert [len(rows) for rows in stream.batches.values()] == [150, 150, 100]
    assert stream.rows == consumed_rows(broker.bootstrap, topic)


def test_a_topic_recreated_under_a_running_query_fails_it(
    broker: EmbeddedBroker, topic: str, stream: Stream
) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 100, 2)
    query = stream.start(processingTime="50 milliseconds")
    try:
        until(lambda: len(stream.rows) == 100 or query.exception())
        recreate(broker, topic, 400)
        with pytest.raises(StreamingQueryException):  # while the topic does not exist, that is the error
            query.awaitTermination(60)
    finally:
        query.stop()
    assert len(stream.rows) == 100


def test_with_fail_on_data_loss_false_the_running_query_reads_a_recreated_topic_from_its_start(
    broker: EmbeddedBroker, topic: str, stream: Stream
) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 100, 2)
    stream.options |= LENIENT
    query = stream.start(processingTime="50 milliseconds")
    try:
        until(lambda: len(stream.rows) == 100 or query.exception())
        before = set(stream.batches)
        recreate(broker, topic, 400)
        until(lambda: len(stream.rows) >= 500 or query.exception())
    finally:
        query.stop()
    rows = sorted(row for number, rows in stream.batches.items() if number not in before for row in rows)
    assert rows == consumed_rows(broker.bootstrap, topic)


def test_an_uncommitted_batch_is_not_repeated_from_the_new_topic(
    broker: EmbeddedBroker, topic: str, stream: Stream
) -> None:
    read_then_recreate(broker, topic, stream, 400)
    for path in (stream.checkpoint / "commits").glob("*0*"):
        path.unlink()
    with pytest.raises(StreamingQueryException, match="was deleted and created again"):
        stream.run()
    stream.options |= LENIENT
    stream.run()
    assert stream.batches[0] == []
    assert stream.rows == consumed_rows(broker.bootstrap, topic)


def test_a_checkpoint_without_ids_continues(broker: EmbeddedBroker, topic: str, stream: Stream) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 100, 2)
    stream.run()
    path = stream.checkpoint / "offsets" / "0"
    lines = path.read_text().splitlines()
    assert f"#topicId:{topic}:{topic_id(broker, topic)}" in json.loads(lines[-1])
    path.write_text("\n".join([*lines[:-1], json.dumps({topic: {"0": 50, "1": 50}})]))
    (path.parent / ".0.crc").unlink(missing_ok=True)
    fill(broker.bootstrap, topic, 20, 2)
    stream.run()
    assert stream.rows == consumed_rows(broker.bootstrap, topic)
    recreate(broker, topic, 400)
    with pytest.raises(StreamingQueryException, match="was deleted and created again"):
        stream.run()


def test_a_batch_query_with_offsets_requests_no_ids(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, stream: Stream
) -> None:
    read_then_recreate(broker, topic, stream, 400)
    given = {"startingOffsets": json.dumps({topic: {"0": 50, "1": 50}})}
    frame = spark.read.format("barnabas").options(**{**stream.options, **given}).load()
    assert frame.count() == 300


def test_assigned_partitions_are_checked(broker: EmbeddedBroker, topic: str, stream: Stream) -> None:
    del stream.options["subscribe"]
    stream.options["assign"] = json.dumps({topic: [1]})
    read_then_recreate(broker, topic, stream, 400)
    with pytest.raises(StreamingQueryException, match="was deleted and created again"):
        stream.run()
    stream.options |= LENIENT
    stream.run()
    expected = consumed_rows(broker.bootstrap, topic)
    tp = TopicPartition(topic, 1)
    assert stream.rows == [row for row in expected if (row.topic, row.partition) == tp]
