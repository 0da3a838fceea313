"""Whatever befell a topic, our source has the rows that a consumer of another make sees: each once, by both transports.

Without Spark: what its tasks would be given, and its streams' micro-batches.
"""

import json
import os
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barnabas.base.ids import TopicPartition
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.losses import DataLossError
from support.befallen import CONFIGS, STEPS, TRANSPORTS, Step, Stream, Topic, some
from support.source_rows import fill, read_rows
from support.waiting import until


@some
@given(CONFIGS, STEPS, st.integers(1, 6))
def test_a_batch_has_the_rows_of_a_consumer(
    broker: EmbeddedBroker, names: Any, configs: dict[str, str], steps: list[Step], tasks: int
) -> None:
    topic = Topic(broker.bootstrap, broker.directory, next(names), configs)
    for step in steps:
        topic.befall(step)
    topic.check(tasks)


@some
@given(CONFIGS, st.lists(st.tuples(STEPS, st.booleans()), min_size=1, max_size=3), st.integers(8, 60))
@example({}, [([("fill", "lz4", 20, 2)], False), ([("grow",)], False), ([("grow",)], True)], 7)
def test_a_stream_takes_each_row_of_a_consumer_once(
    broker: EmbeddedBroker, names: Any, configs: dict[str, str], chapters: list[Any], limit: int
) -> None:
    topic = Topic(broker.bootstrap, broker.directory, next(names), configs)
    given = {"maxOffsetsPerTrigger": str(limit), "failOnDataLoss": "false"}
    streams = [Stream(topic.options(transport, **given)) for transport in TRANSPORTS]
    for steps, restarts in chapters:
        for step in steps:
            topic.befall(step)
        for stream in streams:
            stream.take()
            if restarts:
                stream.restart()
    remaining = set(topic.rows())
    for stream in streams:
        found = stream.finish()
        assert len(set(found)) == len(found)
        assert remaining <= set(found) <= remaining | set(topic.deleted)


# Logs that lose their ends


def lose_the_end(broker: EmbeddedBroker, topic: str, before: int) -> None:
    """As a power cut may, when nothing was flushed: the segment is as long as it was earlier."""
    [path] = (broker.directory / f"{topic}-0").glob("*.log")
    broker._halt(kill=True)
    os.truncate(path, before)
    broker._serve()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_log_that_was_truncated_is_a_loss_or_read_as_far_as_it_goes(topic: str, transport: str) -> None:
    with EmbeddedBroker() as broker:
        befallen = Topic(broker.bootstrap, broker.directory, topic, {})
        fill(broker.bootstrap, topic, 10)
        [path] = (broker.directory / f"{topic}-0").glob("*.log")
        size_bytes = path.stat().st_size
        fill(broker.bootstrap, topic, 10)
        given = {"endingOffsets": json.dumps({topic: {"0": 20, "1": 0, "2": 0}})}
        options = befallen.options(transport, **given)
        assert len(read_rows(options)) == 20
        stream = Stream(befallen.options(transport))
        stream.take()
        lose_the_end(broker, topic, size_bytes)
        with pytest.raises(DataLossError, match="ends at offset 10 now"):
            read_rows(options)
        assert read_rows({**options, "failOnDataLoss": "false"}) == befallen.rows()
        with pytest.raises(DataLossError, match="ends at offset 10 now, and was read to 20 before"):
            stream.take()
        stream.options["failOnDataLoss"] = "false"
        stream.rows.clear()
        stream.restart()
        fill(broker.bootstrap, topic, 5)
        assert stream.finish() == befallen.rows()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_stream_fails_for_records_that_were_deleted_before_it_came_to_them(
    broker: EmbeddedBroker, topic: str, transport: str
) -> None:
    befallen = Topic(broker.bootstrap, broker.directory, topic, {})
    fill(broker.bootstrap, topic, 20)
    stream = Stream(befallen.options(transport))
    stream.take()
    fill(broker.bootstrap, topic, 20)
    broker.client.admin.delete_records({TopicPartition(topic, 0): 30})
    if transport == "files":  # which may read what is still there until then
        until(lambda: f"{topic} 0 30" in (broker.directory / "log-start-offset-checkpoint").read_text())
    with pytest.raises(DataLossError, match="offsets 20 to 30 are gone"):
        stream.take()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_stream_fails_when_its_topic_was_made_anew(
    broker: EmbeddedBroker, topic: str, transport: str
) -> None:
    befallen = Topic(broker.bootstrap, broker.directory, topic, {})
    fill(broker.bootstrap, topic, 20)
    stream = Stream(befallen.options(transport))
    stream.take()
    broker.delete_topic(topic)
    broker.create_topic(topic, 3)
    fill(broker.bootstrap, topic, 30)
    with pytest.raises(DataLossError, match="deleted and made anew"):
        stream.take()
