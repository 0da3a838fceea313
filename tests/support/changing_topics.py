"""Topics that change while they are read, and a stream of the source over one, without Spark."""

import json
import pickle
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.blocking import BlockingClient
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from pyspark_barnabas.source.stream_reader import StreamReader
from support.cleaned_logs import active_offset, is_cleaned
from support.confluent_transactions import transact_at
from support.source_rows import (
    COLUMNS,
    WAIT_S,
    SourceRow,
    consumed_rows,
    fill,
    producer,
    read_rows,
    rows_of,
    source_options,
)
from support.waiting import until

TRANSPORTS = ("fetch", "files")
LEVELS = ("read_committed", "read_uncommitted")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS_MAX = 4

#: A change of a topic: ("fill", codec, count, partitions), ("transact", outcomes), ("grow",),
#: ("delete", partition, share), or ("compact",).
Step = tuple[Any, ...]
FILLS = st.tuples(st.just("fill"), st.sampled_from(CODECS), st.integers(1, 40), st.integers(1, 2))
TRANSACTIONS = st.tuples(st.just("transact"), st.text("ca", min_size=1, max_size=3))
GROWTH = st.just(("grow",))
DELETIONS = st.tuples(st.just("delete"), st.integers(0, 1), st.floats(0, 1))
COMPACTIONS = st.just(("compact",))
STEPS = st.lists(
    st.one_of(FILLS, FILLS, TRANSACTIONS, GROWTH, DELETIONS, COMPACTIONS), min_size=1, max_size=7
)
CONFIGS = st.fixed_dictionaries(
    {
        "message.timestamp.type": st.sampled_from(["CreateTime", "LogAppendTime"]),
        "internal.segment.bytes": st.sampled_from(["2000", "1000000"]),
    }
)

#: Settings of a producer whose batches all fit into the smallest segment.
SMALL_BATCHES: dict[str, Any] = {"batch_size": 1_500}

#: Configs while a topic is compacted: each append rolls the segment, and every log is worth a cleaning pass.
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0"}

some = settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Topic:
    """A topic to which steps are applied; its last partition stays empty unless it grows or is compacted."""

    def __init__(self, bootstrap: str, log_dir: Path, name: str, configs: Mapping[str, str]) -> None:
        self.bootstrap, self.log_dir, self.name = bootstrap, log_dir, name
        self.partitions_count = 3
        self.transactions_count = 0
        self.closings_count = 0
        self.deleted: list[SourceRow] = []
        with BlockingClient(bootstrap) as client:
            created = client.admin.create_topics(
                [NewTopic(name, self.partitions_count, configs=dict(configs))]
            )
            raise_errors(created.values())

    def apply(self, result: Step) -> None:
        match result:
            case "fill", codec, count, partitions:
                fill(self.bootstrap, self.name, count, partitions, compression_type=codec, **SMALL_BATCHES)
            case "transact", outcomes:
                self.transactions_count += 1
                transact_at(self.bootstrap, self.name, f"{self.name}-{self.transactions_count}", outcomes)
            case ("grow",) if self.partitions_count < PARTITIONS_MAX:
                self.partitions_count += 1
                with BlockingClient(self.bootstrap) as client:
                    client.admin.create_partitions({self.name: self.partitions_count})
                fill(self.bootstrap, self.name, 8, self.partitions_count, **SMALL_BATCHES)
            case "delete", partition, share:
                rows = self.rows()
                offsets = [row.offset for row in rows if row.partition == partition]
                if offsets:
                    before = offsets[0] + round(share * (offsets[-1] + 1 - offsets[0]))
                    self.deleted += [row for row in rows if row[1] == partition and row[2] < before]
                    with BlockingClient(self.bootstrap) as client:
                        client.admin.delete_records({TopicPartition(self.name, partition): before})
            case ("compact",):
                self.compact()

    def compact(self) -> None:
        """Let the broker's cleaner run once over all records, then disable compaction again."""
        partitions = [TopicPartition(self.name, index) for index in range(self.partitions_count)]
        before = self.rows()
        self._alter([AlterConfigOp(key, OpType.SET, value) for key, value in COMPACTED.items()])
        for tp in partitions * 2:  # the second append closes a segment from which nothing was deleted
            until(partial(self._begins_segment, tp))
        until(lambda: all(is_cleaned(self.log_dir, tp) for tp in partitions))
        self._alter([AlterConfigOp(key, OpType.DELETE) for key in COMPACTED])
        self.deleted += set(before) - set(self.rows())

    def _alter(self, edits: list[AlterConfigOp]) -> None:
        with BlockingClient(self.bootstrap) as client:
            altered = client.admin.alter_configs({Resource(ResourceKind.TOPIC, self.name): edits})
        raise_errors(altered.values())

    def _begins_segment(self, tp: TopicPartition) -> bool:
        """Append a record, and return whether it is the first of a segment."""
        self.closings_count += 1
        deliveries: list[Any] = []
        writer = producer(self.bootstrap)
        writer.produce(
            self.name,
            b"closing",
            b"closing",
            partition=tp.partition,
            timestamp=round(time.time() * 1000) + 1000 * self.closings_count,
            on_delivery=lambda *outcome: deliveries.append(outcome),
        )
        assert writer.flush(WAIT_S) == 0
        [(error, message)] = deliveries
        assert error is None
        return bool(active_offset(self.log_dir, tp) == message.offset())

    def rows(self, *, committed: bool = False) -> list[SourceRow]:
        return consumed_rows(self.bootstrap, self.name, committed=committed)

    def options(self, transport: str, **settings: str) -> dict[str, str]:
        location = {"transport": transport, "logDirs": str(self.log_dir)}
        return source_options(self.bootstrap, self.name, **location, **settings)

    def check(self, tasks: int) -> None:
        """Compare a batch read with a consumer's rows, over both transports and both isolation levels."""
        for level in LEVELS:
            expected = self.rows(committed=level == "read_committed")
            for transport in TRANSPORTS:
                options = self.options(transport, minPartitions=str(tasks), kafka_isolation_level=level)
                assert read_rows(options) == expected, (level, transport)


class Stream:
    """A query as Spark runs it: offsets and tasks travel as JSON and pickles, and a restart keeps only those."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = {"startingOffsets": "earliest", **options}
        self.position: dict[str, dict[str, int]] | None = None
        self.rows: list[SourceRow] = []
        self.reader = StreamReader(self.options, COLUMNS)

    def restart(self) -> None:
        self.reader.stop()
        self.reader = StreamReader(self.options, COLUMNS)

    def run_batch(self) -> bool:
        """Run a micro-batch, and return whether it had data."""
        start = self.reader.initialOffset() if self.position is None else self.position
        end = self.reader.latestOffset(start, self.reader.getDefaultReadLimit())
        tasks = pickle.loads(pickle.dumps(self.reader.partitions(start, end)))
        reading = pickle.loads(pickle.dumps(self.reader))
        for task in tasks:
            self.rows += rows_of(reading.read(task))
        self.position = json.loads(json.dumps(end))
        return bool(end != start)

    def finish(self) -> list[SourceRow]:
        """Read to the end, and return all rows by partition and offset."""
        while self.run_batch():
            pass
        self.reader.stop()
        return sorted(self.rows)
