"""`spark.readStream.format("barnabas")` on a real session: micro-batches, restarts, changing topics."""

import json
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from barnabas.base.ids import TopicPartition
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.progress import GroupProgress, offsets_behind_latest
from pyspark_barnabas.stream_offsets import positions_only
from support.source_rows import consumed_rows, fill, source_options
from support.streams import Stream
from support.waiting import until


@pytest.fixture
def stream(spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path) -> Stream:
    return Stream(spark, source_options(broker.bootstrap, topic), tmp_path)


def test_a_query_continues_at_its_checkpoint(broker: EmbeddedBroker, topic: str, stream: Stream) -> None:
    broker.create_topic(topic, 2)
    for _ in range(3):
        fill(broker.bootstrap, topic, 40, 2)
        stream.run()
    stream.run()
    assert stream.rows == consumed_rows(broker.bootstrap, topic)
    assert len(stream.batches) == 3


def test_no_batch_exceeds_its_limit(broker: EmbeddedBroker, topic: str, stream: Stream) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 100, 2)
    stream.options["maxOffsetsPerTrigger"] = "30"
    stream.run()
    assert [len(rows) for rows in stream.batches.values()] == [30, 30, 30, 10]
    assert stream.rows == consumed_rows(broker.bootstrap, topic)


def test_batches_wait_for_enough_records(broker: EmbeddedBroker, topic: str, stream: Stream) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 10)
    stream.options["minOffsetsPerTrigger"] = "30"
    query = stream.start(processingTime="50 milliseconds")
    try:
        until(lambda: len(stream.batches) == 1 or query.exception())
        for _ in range(3):
            fill(broker.bootstrap, topic, 10)
        until(lambda: len(stream.batches) == 2 or query.exception())
    finally:
        query.stop()
    assert [len(rows) for rows in stream.batches.values()] == [10, 30]


def test_an_uncommitted_batch_is_repeated_unchanged(
    broker: EmbeddedBroker, topic: str, stream: Stream
) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 60, 2)
    stream.options["maxOffsetsPerTrigger"] = "25"
    stream.run()
    for path in stream.checkpoint.glob("commits/*2*"):
        path.unlink()
    fill(broker.bootstrap, topic, 20, 2)
    before = dict(stream.batches)
    stream.batches.clear()
    stream.run()
    assert next(iter(stream.batches.items())) == (2, before[2])


def test_a_query_continues_from_the_connectors_checkpoint(
    broker: EmbeddedBroker, topic: str, stream: Stream
) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 20, 2)
    stream.run()
    [path] = stream.checkpoint.glob("offsets/0")
    lines = path.read_text().splitlines()
    assert positions_only(json.loads(lines[-1])) == {topic: {"0": 10, "1": 10}}
    path.write_text("\n".join([*lines[:-1], f'{{"{topic}":{{"1":10,"0":7}}}}']))
    (stream.checkpoint / "offsets" / ".0.crc").unlink(missing_ok=True)
    stream.batches.clear()
    stream.run()
    assert [(row.partition, row.offset) for row in stream.rows] == [(0, 7), (0, 8), (0, 9)]


def test_a_query_starts_at_the_latest_offset_by_default(
    broker: EmbeddedBroker, topic: str, stream: Stream
) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 10)
    stream.options["startingOffsets"] = "latest"
    stream.run()
    fill(broker.bootstrap, topic, 5)
    stream.run()
    assert [row.offset for row in stream.rows] == [10, 11, 12, 13, 14]


def test_a_query_that_failed_at_once_has_all_records_after_its_first_start(
    broker: EmbeddedBroker, topic: str, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 10)
    stream.options["startingOffsets"] = "latest"

    def fail(batch: DataFrame, number: int) -> None:
        raise RuntimeError(f"batch {number} is not written")

    with monkeypatch.context() as patched:
        patched.setattr(stream, "take", fail)
        with pytest.raises(StreamingQueryException, match="batch 0 is not written"):
            stream.run()
    fill(broker.bootstrap, topic, 5)
    stream.run()
    assert [row.offset for row in stream.rows] == [10, 11, 12, 13, 14]


def test_partitions_added_during_a_query_are_read_from_their_first_record(
    broker: EmbeddedBroker, topic: str, stream: Stream
) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 10)
    query = stream.start(processingTime="100 milliseconds")
    try:
        until(lambda: len(stream.rows) == 10 or query.exception())
        broker.client.admin.create_partitions({topic: 3})
        fill(broker.bootstrap, topic, 30, 3)
        until(lambda: len(stream.rows) == 40 or query.exception())
        assert query.lastProgress is not None
    finally:
        query.stop()
    assert stream.rows == consumed_rows(broker.bootstrap, topic)
    broker.client.admin.create_partitions({topic: 4})
    fill(broker.bootstrap, topic, 40, 4)
    stream.run()
    assert stream.rows == consumed_rows(broker.bootstrap, topic)


def test_matching_topics_created_during_a_query_are_read(
    broker: EmbeddedBroker, topic: str, stream: Stream
) -> None:
    del stream.options["subscribe"]
    stream.options["subscribePattern"] = f"{topic}-.*"
    broker.produce(f"{topic}-a", "first")
    stream.run()
    broker.produce(f"{topic}-b", "second")
    stream.run()
    assert [(row.topic, row.value) for row in stream.rows] == [
        (f"{topic}-a", b"first"),
        (f"{topic}-b", b"second"),
    ]


def test_a_query_survives_a_restart_of_the_broker(spark: SparkSession, topic: str, tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic(topic)
        fill(broker.bootstrap, topic, 10)
        stream = Stream(spark, source_options(broker.bootstrap, topic), tmp_path)
        query = stream.start(processingTime="100 milliseconds")
        until(lambda: len(stream.rows) == 10 or query.exception())
        broker.restart(kill=True)
        fill(broker.bootstrap, topic, 10)
        until(lambda: len(stream.rows) == 20 or query.exception())
        query.stop()
        assert stream.rows == consumed_rows(broker.bootstrap, topic)


def test_progress_has_offsets_in_the_connectors_format(
    broker: EmbeddedBroker, topic: str, stream: Stream
) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 20, 2)
    [progress] = [each for each in stream.run().recentProgress if each.numInputRows]
    [source] = progress.sources
    assert positions_only(json.loads(source.endOffset)) == positions_only(json.loads(source.latestOffset))
    assert positions_only(json.loads(source.endOffset)) == {topic: {"0": 10, "1": 10}}


def test_offsets_behind_the_latest_are_those_of_the_connectors_metrics(
    broker: EmbeddedBroker, topic: str, stream: Stream
) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 20, 2)
    stream.options["maxOffsetsPerTrigger"] = "10"
    first, last = [each for each in stream.run().recentProgress if each.numInputRows]
    names = ("minOffsetsBehindLatest", "maxOffsetsBehindLatest", "avgOffsetsBehindLatest")
    assert offsets_behind_latest(first.sources[0]) == dict(zip(names, ("5", "5", "5.0"), strict=True))
    assert offsets_behind_latest(last.sources[0]) == dict(zip(names, ("0", "0", "0.0"), strict=True))


def test_progress_can_be_committed_as_a_groups_offsets(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, stream: Stream
) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 20, 2)
    listener = GroupProgress({**stream.options, "kafka.group.id": f"{topic}-readers"})
    spark.streams.addListener(listener)
    try:
        stream.run()
        partitions = [TopicPartition(topic, index) for index in (0, 1)]
        until(lambda: committed(broker, f"{topic}-readers") == dict.fromkeys(partitions, 10))
    finally:
        spark.streams.removeListener(listener)
        listener.close()


def committed(broker: EmbeddedBroker, group: str) -> dict[TopicPartition, int]:
    return {tp: each.offset for tp, each in broker.client.groups.offsets(group).items()}


# Data loss


def delete_unread(broker: EmbeddedBroker, topic: str, stream: Stream) -> None:
    """Ten records are read; of twenty that follow, five are deleted."""
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 10)
    stream.run()
    fill(broker.bootstrap, topic, 20)
    broker.client.admin.delete_records({TopicPartition(topic, 0): 15})


def test_records_deleted_before_they_were_read_fail_the_query(
    broker: EmbeddedBroker, topic: str, stream: Stream
) -> None:
    delete_unread(broker, topic, stream)
    with pytest.raises(StreamingQueryException, match="offsets 10 to 15 are gone"):
        stream.run()


def test_with_fail_on_data_loss_false_deleted_records_are_skipped(
    broker: EmbeddedBroker, topic: str, stream: Stream
) -> None:
    delete_unread(broker, topic, stream)
    stream.options["failOnDataLoss"] = "false"
    stream.run()
    assert [row.offset for row in stream.rows] == [*range(10), *range(15, 30)]


def test_a_stream_has_no_ending_offsets(stream: Stream) -> None:
    stream.options["endingOffsets"] = "latest"
    with pytest.raises(Exception, match="endingOffsets"):
        stream.run()
