"""Measured queries: each a function of the format alone, so that both sides run the same."""

import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr, from_json

from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.blocking import BlockingClient
from bench.spark.topics import WIDE_SCHEMA, Shape, rows

THEIRS = "kafka"
OURS = "barnabas"
MICRO_BATCH_ROWS = 20_000
MICRO_BATCH_ROWS_MIN = 18_000  #: each partition gets its share, rounded; the last micro-batch has the rest
QUERY_ENDS_WITHIN_S = 600
#: The first micro-batches of a query compile what later ones run.
MICRO_BATCHES_UNMEASURED = 2

Timed = Callable[[str], float]  #: the seconds that a format takes


@dataclass
class Ground:
    """The session, the broker and the directories of a benchmark."""

    session: SparkSession
    bootstrap: str
    scratch: Path
    data_dir: Path  #: the broker's log directory
    numbers: Iterator[int] = field(default_factory=count)

    def source(self, name: str, topic: str) -> DataFrame:
        """Read a topic as a batch."""
        reader = self.session.read.format(name).option("kafka.bootstrap.servers", self.bootstrap)
        return reader.option("subscribe", topic).load()

    def make_topic(self, name: str, partitions: int, configs: Mapping[str, str] | None = None) -> str:
        """Create a topic without retention, unless `configs` override that; return its name."""
        with BlockingClient(self.bootstrap) as client:
            new = NewTopic(name, partitions, configs=configs or {})
            raise_errors(client.admin.create_topics([new]).values())
        return name

    def delete_topic(self, name: str) -> None:
        with BlockingClient(self.bootstrap) as client:
            raise_errors(client.admin.delete_topics([name]).values())

    def new_directory(self) -> Path:
        """Return a path that does not exist yet."""
        return self.scratch / f"out-{next(self.numbers)}"


def timed(work: Callable[[], object]) -> float:
    """Return the wall time in seconds."""
    started_s = time.perf_counter()
    work()
    return time.perf_counter() - started_s


def count_rows(ground: Ground, topic: str) -> Timed:
    return lambda name: timed(ground.source(name, topic).count)


def sum_of_lengths(ground: Ground, topic: str) -> Timed:
    """Read one column."""
    return lambda name: timed(ground.source(name, topic).selectExpr("sum(length(value))").collect)


def noop(ground: Ground, topic: str) -> Timed:
    """Create every column of every row, and discard them."""
    return lambda name: timed(ground.source(name, topic).write.format("noop").mode("overwrite").save)


def parquet(ground: Ground, topic: str) -> Timed:
    """Write the rows to files unchanged."""

    def run(name: str) -> float:
        directory = ground.new_directory()
        taken_s = timed(lambda: ground.source(name, topic).write.parquet(str(directory)))
        shutil.rmtree(directory)
        return taken_s

    return run


def wide_columns(ground: Ground, name: str, topic: str) -> DataFrame:
    """Return the columns of a topic of wide JSON events."""
    value = from_json(col("value").cast("string"), WIDE_SCHEMA).alias("event")
    return ground.source(name, topic).select(value).select("event.*")


def parsed(ground: Ground, topic: str) -> Timed:
    """Parse every column, and discard them."""
    return lambda name: timed(wide_columns(ground, name, topic).write.format("noop").mode("overwrite").save)


def aggregated(ground: Ground, topic: str) -> Timed:
    """Group by one column, and sum up others."""
    sums = [f"sum(c{number}) s{number}" for number in range(1, 11)]

    def run(name: str) -> float:
        groups = wide_columns(ground, name, topic).groupBy(expr("c0 % 1000 AS product"))
        return timed(groups.agg(*map(expr, sums)).collect)

    return run


def joined(ground: Ground, topic: str) -> Timed:
    """Join with a table by a shuffle, and count what remains."""
    products = ground.session.range(0, 1_000_000, 7).withColumnRenamed("id", "c0")

    def run(name: str) -> float:
        events = wide_columns(ground, name, topic).select("c0", "c1", "c2")
        return timed(events.join(products.hint("merge"), "c0").groupBy("c1").count().count)

    return run


def parsed_parquet(ground: Ground, topic: str) -> Timed:
    """Write the parsed columns to files."""

    def run(name: str) -> float:
        directory = ground.new_directory()
        taken_s = timed(lambda: wide_columns(ground, name, topic).write.parquet(str(directory)))
        shutil.rmtree(directory)
        return taken_s

    return run


def micro_batch(ground: Ground, topic: str) -> Timed:
    """Return the median duration of a micro-batch into Parquet."""

    def run(name: str) -> float:
        directory = ground.new_directory()
        stream = (
            ground.session.readStream.format(name)
            .option("kafka.bootstrap.servers", ground.bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", str(MICRO_BATCH_ROWS))
            .load()
        )
        query = (
            stream.writeStream.format("parquet")
            .option("checkpointLocation", str(directory / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(directory / "table"))
        )
        try:
            query.awaitTermination(QUERY_ENDS_WITHIN_S)
            durations_ms = [
                progress["durationMs"]["triggerExecution"]
                for progress in query.recentProgress
                if progress["numInputRows"] >= MICRO_BATCH_ROWS_MIN
            ]
        finally:
            query.stop()
            shutil.rmtree(directory)
        return float(statistics.median(durations_ms[MICRO_BATCHES_UNMEASURED:])) / 1_000

    return run


def write(ground: Ground, shape: Shape, partitions: int) -> Timed:
    """Write rows to a topic: ours exactly once, theirs at least once, because it has no transactions."""

    def run(name: str) -> float:
        topic = ground.make_topic(f"written-{next(ground.numbers)}", partitions)
        writer = rows(ground.session, shape).write.format(name).option("topic", topic)
        writer = writer.option("kafka.bootstrap.servers", ground.bootstrap).mode("append")
        if name == OURS:
            writer = writer.option("delivery", "exactly-once")
        taken_s = timed(writer.save)
        ground.delete_topic(topic)
        return taken_s

    return run
