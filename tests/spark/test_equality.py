"""After any changes of a topic our source has the rows of a confluent-kafka consumer: each once, over both
transports.

Without Spark: the tasks and micro-batches are executed directly.
"""

import json
import os
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barnabas.base.ids import TopicPartition
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.plain_errors import BarnabasError
from support.changing_topics import CONFIGS, LEVELS, STEPS, TRANSPORTS, Step, Stream, Topic, some
from support.source_rows import WAIT_S, SourceRow, fill, producer, read_rows
from support.waiting import until

SMALL = {"internal.segment.bytes": "2000"}


@some
@given(CONFIGS, STEPS, st.integers(1, 6))
@example(SMALL, [("fill", "lz4", 40, 2), ("transact", "cac"), ("fill", "none", 40, 1), ("compact",)], 4)
def test_a_batch_has_the_rows_of_a_consumer(
    broker: EmbeddedBroker, names: Any, configs: dict[str, str], steps: list[Step], tasks: int
) -> None:
    topic = Topic(broker.bootstrap, broker.directory, next(names), configs)
    for step in steps:
        topic.apply(step)
    topic.check(tasks)


#: Rows of transactions, committed, aborted and open, and compacted ones; some are deleted between two reads.
COMPACTED = [
    ([("fill", "lz4", 40, 2), ("transact", "ac")], False),
    ([("transact", "aca"), ("fill", "zstd", 40, 1), ("compact",)], True),
    ([("transact", "ca"), ("compact",), ("fill", "none", 10, 2)], False),
]


@pytest.mark.parametrize("level", LEVELS)
@some
@given(CONFIGS, st.lists(st.tuples(STEPS, st.booleans()), min_size=1, max_size=3), st.integers(8, 60))
@example({}, [([("fill", "lz4", 20, 2)], False), ([("grow",)], False), ([("grow",)], True)], 7)
@example(SMALL, COMPACTED, 9)
def test_a_stream_reads_each_row_of_a_consumer_once(
    broker: EmbeddedBroker, names: Any, level: str, configs: dict[str, str], chapters: list[Any], limit: int
) -> None:
    topic = Topic(broker.bootstrap, broker.directory, next(names), configs)
    committed = level == "read_committed"
    given = {
        "maxOffsetsPerTrigger": str(limit),
        "failOnDataLoss": "false",
        "kafka_isolation_level": level,
    }
    streams = [Stream(topic.options(transport, **given)) for transport in TRANSPORTS]
    for steps, restarts in chapters:
        for step in steps:
            topic.apply(step)
        for stream in streams:
            stream.run_batch()
            if restarts:
                stream.restart()
    remaining = set(topic.rows(committed=committed))
    deleted = {row for row in topic.deleted if not (committed and was_aborted(row))}
    for stream in streams:
        found = stream.finish()
        assert len(set(found)) == len(found)
        assert remaining <= set(found) <= remaining | deleted


def was_aborted(row: SourceRow) -> bool:
    """Whether the row was written in an aborted transaction, as its value says."""
    return b" a " in (row.value or b"")


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("outcome", ["commit", "abort"])
def test_a_read_committed_stream_waits_for_open_transactions(
    broker: EmbeddedBroker, topic: str, transport: str, outcome: str
) -> None:
    changing_topic = Topic(broker.bootstrap, broker.directory, topic, {})
    fill(broker.bootstrap, topic, 10)
    writer = producer(broker.bootstrap, transactional_id=topic)
    writer.init_transactions(WAIT_S)
    writer.begin_transaction()
    writer.produce(topic, b"open", partition=0)
    writer.flush(WAIT_S)
    fill(broker.bootstrap, topic, 5)
    stream = Stream(changing_topic.options(transport, kafka_isolation_level="read_committed"))
    while stream.run_batch():
        pass
    assert [row.offset for row in stream.rows] == list(range(10))
    if outcome == "commit":
        writer.commit_transaction(WAIT_S)
    else:
        writer.abort_transaction(WAIT_S)
    behind = range(10, 16) if outcome == "commit" else range(11, 16)  # 16 is the marker
    until(lambda: changing_topic.rows(committed=True)[-1].offset == 15)
    found = stream.finish()
    assert [row.offset for row in found] == [*range(10), *behind]
    assert found == changing_topic.rows(committed=True)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_compaction_gaps_are_not_data_loss_for_a_stream(
    broker: EmbeddedBroker, topic: str, transport: str, level: str
) -> None:
    changing_topic = Topic(broker.bootstrap, broker.directory, topic, SMALL)
    for step in (("fill", "lz4", 60, 2), ("transact", "aca"), ("fill", "none", 60, 2)):
        changing_topic.apply(step)
    stream = Stream(changing_topic.options(transport, maxOffsetsPerTrigger="13", kafka_isolation_level=level))
    stream.run_batch()
    stream.run_batch()
    changing_topic.apply(("compact",))
    assert changing_topic.deleted
    taken, position = list(stream.rows), stream.position
    assert position is not None
    rows = changing_topic.rows(committed=level == "read_committed")
    ahead = [row for row in rows if row.offset >= position[topic][str(row.partition)]]
    assert taken
    assert ahead
    assert stream.finish() == sorted(taken + ahead)


# Truncated logs


def truncate_log(broker: EmbeddedBroker, topic: str, before: int) -> None:
    """Truncate the segment to an earlier size, as a power failure may do if nothing was flushed."""
    [path] = (broker.directory / f"{topic}-0").glob("*.log")
    broker.halt(kill=True)
    os.truncate(path, before)
    broker.serve()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_truncated_log_is_data_loss_or_read_to_its_end(topic: str, transport: str) -> None:
    with EmbeddedBroker() as broker:
        changing_topic = Topic(broker.bootstrap, broker.directory, topic, {})
        fill(broker.bootstrap, topic, 10)
        [path] = (broker.directory / f"{topic}-0").glob("*.log")
        size_bytes = path.stat().st_size
        fill(broker.bootstrap, topic, 10)
        given = {"endingOffsets": json.dumps({topic: {"0": 20, "1": 0, "2": 0}})}
        options = changing_topic.options(transport, **given)
        assert len(read_rows(options)) == 20
        stream = Stream(changing_topic.options(transport))
        stream.run_batch()
        truncate_log(broker, topic, size_bytes)
        with pytest.raises(BarnabasError, match="ends at offset 10 now"):
            read_rows(options)
        assert read_rows({**options, "failOnDataLoss": "false"}) == changing_topic.rows()
        with pytest.raises(BarnabasError, match="ends at offset 10 now, and was read to 20 before"):
            stream.run_batch()
        stream.options["failOnDataLoss"] = "false"
        stream.rows.clear()
        stream.restart()
        fill(broker.bootstrap, topic, 5)
        assert stream.finish() == changing_topic.rows()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_stream_fails_for_records_deleted_before_it_reads_them(
    broker: EmbeddedBroker, topic: str, transport: str
) -> None:
    changing_topic = Topic(broker.bootstrap, broker.directory, topic, {})
    fill(broker.bootstrap, topic, 20)
    stream = Stream(changing_topic.options(transport))
    stream.run_batch()
    fill(broker.bootstrap, topic, 20)
    broker.client.admin.delete_records({TopicPartition(topic, 0): 30})
    if transport == "files":  # which may read records that still exist until then
        until(lambda: f"{topic} 0 30" in (broker.directory / "log-start-offset-checkpoint").read_text())
    with pytest.raises(BarnabasError, match="offsets 20 to 30 are gone"):
        stream.run_batch()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_stream_fails_when_its_topic_was_recreated(
    broker: EmbeddedBroker, topic: str, transport: str
) -> None:
    changing_topic = Topic(broker.bootstrap, broker.directory, topic, {})
    fill(broker.bootstrap, topic, 20)
    stream = Stream(changing_topic.options(transport))
    stream.run_batch()
    broker.delete_topic(topic)
    broker.create_topic(topic, 3)
    fill(broker.bootstrap, topic, 30)
    with pytest.raises(BarnabasError, match="deleted and created again"):
        stream.run_batch()
