"""Topics that things befall, and a stream of our source over one, without Spark."""

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from barnabas.base.ids import TopicPartition
from barnabas.client.admin import raise_errors
from barnabas.client.admin_model import NewTopic
from barnabas.client.blocking import Client
from pyspark_barnabas.stream_reader import StreamReader
from support.source_rows import COLUMNS, SourceRow, consumed_rows, fill, read_rows, rows_of, source_options
from support.transactions_of_others import transact_at

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

    def __init__(self, bootstrap: str, log_dir: Path, name: str, configs: Mapping[str, str]) -> None:
        self.bootstrap, self.log_dir, self.name = bootstrap, log_dir, name
        self.partitions_count = 3
        self.transactions_count = 0
        self.deleted: list[SourceRow] = []
        with Client(bootstrap) as client:
            created = client.admin.create_topics(
                [NewTopic(name, self.partitions_count, configs=dict(configs))]
            )
            raise_errors(created.values())

    def befall(self, step: Step) -> None:
        match step:
            case "fill", codec, count, partitions:
                fill(self.bootstrap, self.name, count, partitions, compression_type=codec)
            case "transact", outcomes:
                self.transactions_count += 1
                transact_at(self.bootstrap, self.name, f"{self.name}-{self.transactions_count}", outcomes)
            case ("grow",) if self.partitions_count < PARTITIONS_MAX:
                self.partitions_count += 1
                with Client(self.bootstrap) as client:
                    client.admin.create_partitions({self.name: self.partitions_count})
                fill(self.bootstrap, self.name, 8, self.partitions_count)
            case "delete", partition, share:
                rows = self.rows()
                offsets = [row.offset for row in rows if row.partition == partition]
                if offsets:
                    before = offsets[0] + round(share * (offsets[-1] + 1 - offsets[0]))
                    self.deleted += [row for row in rows if row[1] == partition and row[2] < before]
                    with Client(self.bootstrap) as client:
                        client.admin.delete_records({TopicPartition(self.name, partition): before})

    def rows(self, *, committed: bool = False) -> list[SourceRow]:
        return consumed_rows(self.bootstrap, self.name, committed=committed)

    def options(self, transport: str, **given: str) -> dict[str, str]:
        where = {"transport": transport, "logDirs": str(self.log_dir)}
        return source_options(self.bootstrap, self.name, **where, **given)

    def check(self, tasks: int) -> None:
        """A batch has the rows of a consumer, by both transports, committed and uncommitted."""
        for level in ("read_committed", "read_uncommitted"):
            wanted = self.rows(committed=level == "read_committed")
            for transport in TRANSPORTS:
                options = self.options(transport, minPartitions=str(tasks), kafka_isolation_level=level)
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
