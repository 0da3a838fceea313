"""Whatever befell a topic, our source has the rows that a consumer of another make sees: each once, by both transports.

Without Spark: what its tasks would be given, and its streams' micro-batches.
"""

import json
import os
import pickle
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from barnabas.base.ids import TopicPartition
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.losses import DataLossError
from pyspark_barnabas.stream_reader import StreamReader
from support.source_rows import COLUMNS, SourceRow, consumed_rows, fill, read_rows, rows_of, source_options
from support.transactions_of_others import transact
from support.waiting import until

TRANSPORTS = ("fetch", "files")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS_MAX = 4

#: What befalls a topic: ("fill", codec, count, partitions), ("transact", outcomes), ("grow",), or
#: ("delete", partition, share).
Step = tuple[Any, ...]
FILLS = st.tuples(st.just("fill"), st.sampled_from(CODECS), st.integers(1, 40), st.integers(1, 2))
TRANSACTIONS = st.tuples(st.just("transact"), st.text("ca", min_size=1, max_size=3))
GROWTH = st.just(("grow",))
DELETIONS = st.tuples(st.just("delete"), st.integers(0, 1), st.floats(0, 1))
STEPS = st.lists(st.one_of(FILLS, FILLS, TRANSACTIONS, GROWTH, DELETIONS), min_size=1, max_size=7)
CONFIGS = st.fixed_dictionaries(
    {
        "message.timestamp.type": st.sampled_from(["CreateTime", "LogAppendTime"]),
        "internal.segment.bytes": st.sampled_from(["2000", "1000000"]),
    }
)

some = settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Topic:
    """One that things befall; the last of its partitions stays empty unless it grows."""

    def __init__(self, broker: EmbeddedBroker, name: str, configs: Mapping[str, str]) -> None:
        self.broker, self.name = broker, name
        self.partitions_count = 3
        self.transactions_count = 0
        self.deleted: list[SourceRow] = []
        broker.create_topic(name, self.partitions_count, dict(configs))

    def befall(self, step: Step) -> None:
        match step:
            case "fill", codec, count, partitions:
                fill(self.broker.bootstrap, self.name, count, partitions, compression_type=codec)
            case "transact", outcomes:
                self.transactions_count += 1
                transact(self.broker, self.name, f"{self.name}-{self.transactions_count}", outcomes)
            case ("grow",) if self.partitions_count < PARTITIONS_MAX:
                self.partitions_count += 1
                self.broker.client.admin.create_partitions({self.name: self.partitions_count})
                fill(self.broker.bootstrap, self.name, 8, self.partitions_count)
            case "delete", partition, share:
                rows = self.rows()
                offsets = [row.offset for row in rows if row.partition == partition]
                if offsets:
                    before = offsets[0] + round(share * (offsets[-1] + 1 - offsets[0]))
                    self.deleted += [row for row in rows if row[1] == partition and row[2] < before]
                    self.broker.client.admin.delete_records({TopicPartition(self.name, partition): before})

    def rows(self, *, committed: bool = False) -> list[SourceRow]:
        return consumed_rows(self.broker.bootstrap, self.name, committed=committed)

    def options(self, transport: str, **given: str) -> dict[str, str]:
        where = {"transport": transport, "logDirs": str(self.broker.directory)}
        return source_options(self.broker.bootstrap, self.name, **where, **given)


@some
@given(CONFIGS, STEPS, st.integers(1, 6))
def test_a_batch_has_the_rows_of_a_consumer(
    broker: EmbeddedBroker, names: Any, configs: dict[str, str], steps: list[Step], tasks: int
) -> None:
    topic = Topic(broker, next(names), configs)
    for step in steps:
        topic.befall(step)
    for level in ("read_committed", "read_uncommitted"):
        wanted = topic.rows(committed=level == "read_committed")
        for transport in TRANSPORTS:
            options = topic.options(transport, minPartitions=str(tasks), kafka_isolation_level=level)
            assert read_rows(options) == wanted, (level, transport)


class Stream:
    """A query as Spark runs it: offsets and tasks travel as text and pickles, and a restart keeps nothing else."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = {"startingOffsets": "earliest", **options}
        self.position: dict[str, dict[str, int]] | None = None
        self.rows: list[SourceRow] = []
        self.reader = StreamReader(self.options, COLUMNS)

    def restart(self) -> None:
        self.reader.stop()
        self.reader = StreamReader(self.options, COLUMNS)

    def take(self) -> bool:
        """A micro-batch; whether there was anything to take."""
        start = self.reader.initialOffset() if self.position is None else self.position
        end = self.reader.latestOffset(start, self.reader.getDefaultReadLimit())
        tasks = pickle.loads(pickle.dumps(self.reader.partitions(start, end)))
        reading = pickle.loads(pickle.dumps(self.reader))
        for task in tasks:
            self.rows += rows_of(reading.read(task))
        self.position = json.loads(json.dumps(end))
        return bool(end != start)

    def finish(self) -> list[SourceRow]:
        """All there is by now, by partition and offset."""
        while self.take():
            pass
        self.reader.stop()
        return sorted(self.rows)


@some
@given(CONFIGS, st.lists(st.tuples(STEPS, st.booleans()), min_size=1, max_size=3), st.integers(8, 60))
@example({}, [([("fill", "lz4", 20, 2)], False), ([("grow",)], False), ([("grow",)], True)], 7)
def test_a_stream_takes_each_row_of_a_consumer_once(
    broker: EmbeddedBroker, names: Any, configs: dict[str, str], chapters: list[Any], limit: int
) -> None:
    topic = Topic(broker, next(names), configs)
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
        befallen = Topic(broker, topic, {})
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
    befallen = Topic(broker, topic, {})
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
    befallen = Topic(broker, topic, {})
    fill(broker.bootstrap, topic, 20)
    stream = Stream(befallen.options(transport))
    stream.take()
    broker.delete_topic(topic)
    broker.create_topic(topic, 3)
    fill(broker.bootstrap, topic, 30)
    with pytest.raises(DataLossError, match="deleted and made anew"):
        stream.take()
