"""What is timed: each a function of the format alone, so that both sides run the same."""

import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.blocking import BlockingClient
from bench.spark.topics import Shape, rows

THEIRS = "kafka"
OURS = "barnabas"
MICRO_BATCH_ROWS = 20_000
MICRO_BATCH_ROWS_MIN = 18_000  #: each partition gets its share, rounded; the last micro-batch is a rest
QUERY_ENDS_WITHIN_S = 600
#: The first micro-batches of a query compile what the later ones run.
MICRO_BATCHES_UNMEASURED = 2

Timed = Callable[[str], float]  #: the seconds that a format takes


@dataclass
class Ground:
    """Where everything happens."""

    session: SparkSession
    bootstrap: str
    scratch: Path
    data_dir: Path  #: the broker's log directory
    numbers: Iterator[int] = field(default_factory=count)

    def source(self, name: str, topic: str) -> DataFrame:
        """A topic as a batch."""
        reader = self.session.read.format(name).option("kafka.bootstrap.servers", self.bootstrap)
        return reader.option("subscribe", topic).load()

    def make_topic(self, name: str, partitions: int, configs: Mapping[str, str] | None = None) -> str:
        """A topic that keeps what it is given, unless `configs` say otherwise; gives its name."""
        with BlockingClient(self.bootstrap) as client:
            new = NewTopic(name, partitions, configs=configs or {})
            raise_errors(client.admin.create_topics([new]).values())
        return name

    def delete_topic(self, name: str) -> None:
        """It is not needed any more."""
        with BlockingClient(self.bootstrap) as client:
            raise_errors(client.admin.delete_topics([name]).values())

    def new_directory(self) -> Path:
        """A path where nothing is yet."""
        return self.scratch / f"out-{next(self.numbers)}"


def timed(work: Callable[[], object]) -> float:
    """Seconds on the clock."""
    started_s = time.perf_counter()
    work()
    return time.perf_counter() - started_s


def count_rows(ground: Ground, topic: str) -> Timed:
    """How many rows."""
    return lambda name: timed(ground.source(name, topic).count)


def sum_of_lengths(ground: Ground, topic: str) -> Timed:
    """A column is looked at."""
    return lambda name: timed(ground.source(name, topic).selectExpr("sum(length(value))").collect)


def noop(ground: Ground, topic: str) -> Timed:
    """Every column of every row is made, and thrown away."""
    return lambda name: timed(ground.source(name, topic).write.format("noop").mode("overwrite").save)


def parquet(ground: Ground, topic: str) -> Timed:
    """Rows as they are into files."""

    def run(name: str) -> float:
        directory = ground.new_directory()
        taken_s = timed(lambda: ground.source(name, topic).write.parquet(str(directory)))
        shutil.rmtree(directory)
        return taken_s

    return run


def micro_batch(ground: Ground, topic: str) -> Timed:
    """The median duration of a micro-batch into Parquet."""

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
    """Rows into a topic: ours exactly once, theirs at least once, as it has no transactions."""

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
