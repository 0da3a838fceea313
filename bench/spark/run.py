"""Time queries with both connectors in turns: ``python -m bench.spark.run [--quick] [--rounds N] [--only NAME]``."""

import argparse
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench import record_kernels
from bench.measures import Metric
from bench.report import Result, machine
from bench.spark.queries import (
    OURS,
    THEIRS,
    Ground,
    Timed,
    count_rows,
    micro_batch,
    noop,
    parquet,
    sum_of_lengths,
    write,
)
from bench.spark.report import Growth, document
from bench.spark.topics import MB, Shape, fill, plain, shapes
from interop import candidate, connector
from pyspark_barnabas.session import spark_session

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "benchmarks-spark.md"
READ_TARGET = 0.5
SCAN_TARGET = 0.4  #: of what asks for no more than rows
LATENCY_TARGET = 1.2
WRITE_TARGET = 0.8
PARTITIONS = 2
#: One partition to sixteen, and megabytes of values.
GROWTH_PARTITIONS = (1, 2, 4, 8, 16)
GROWTH_MB = (100, 1_000, 10_000)
GROWTH_MB_QUICK = (10, 40)
GROWTH_VALUE_BYTES = 1024

SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
}


@dataclass
class Race:
    """One query and what both sides took, in seconds, round by round."""

    metric: Metric
    timed: Timed
    taken_s: dict[str, list[float]] = field(default_factory=lambda: {THEIRS: [], OURS: []})

    def run(self, rounds: int) -> Result:
        """Warm both up, then let them take turns at going first."""
        for name in (THEIRS, OURS):
            self.timed(name)
        for number in range(rounds):
            for name in (THEIRS, OURS) if number % 2 else (OURS, THEIRS):
                self.taken_s[name].append(self.timed(name))
        result = Result(self.metric, self.taken_s[THEIRS], self.taken_s[OURS])
        print(f"{self.metric.text}: {self.taken_s} ratio {result.ratio:.2f}", flush=True)
        return result


@contextmanager
def running_ground() -> Iterator[Ground]:
    """A broker, and a session that has both formats."""
    home = Path(tempfile.mkdtemp(prefix="bench-spark-"))
    try:
        broker = candidate.start(home)
        try:
            places = {"spark.local.dir": f"{home}/local", "spark.sql.warehouse.dir": f"{home}/warehouse"}
            settings = {**SETTINGS, **places, **connector.settings()}
            session = spark_session("bench", master="local[2]", settings=settings)
            try:
                yield Ground(session, broker.bootstrap, home)
            finally:
                session.stop()
        finally:
            broker.stop()
    finally:
        shutil.rmtree(home)


def races_of(ground: Ground, shape: Shape) -> Iterator[Race]:
    """The queries on one kind of records."""
    topic = ground.make_topic(shape.name, PARTITIONS)
    fill(ground.session, ground.bootstrap, topic, shape)
    yield Race(Metric(f"count, {shape.text}", "s", SCAN_TARGET), count_rows(ground, topic))
    yield Race(Metric(f"sum of lengths, {shape.text}", "s", READ_TARGET), sum_of_lengths(ground, topic))
    yield Race(Metric(f"noop, {shape.text}", "s", SCAN_TARGET), noop(ground, topic))
    yield Race(Metric(f"Parquet, {shape.text}", "s", READ_TARGET), parquet(ground, topic))


def other_races(ground: Ground, scale: float) -> Iterator[Race]:
    """What is not a batch that is read."""
    small = plain("micro", 100, max(int(400_000 * scale), 100_000))
    topic = ground.make_topic(small.name, PARTITIONS)
    fill(ground.session, ground.bootstrap, topic, small)
    yield Race(
        Metric("micro-batch of 20,000 rows into Parquet", "s", LATENCY_TARGET), micro_batch(ground, topic)
    )
    written = plain("written", 100, int(2_000_000 * scale))
    yield Race(
        Metric(f"write, {written.text}, exactly once against at least once", "s", WRITE_TARGET),
        write(ground, written, PARTITIONS),
    )


def grown(ground: Ground, sizes_mb: Sequence[int], rounds: int) -> Iterator[Growth]:
    """The noop query on more partitions, and on more bytes."""
    steps = [(partitions, sizes_mb[0]) for partitions in GROWTH_PARTITIONS]
    steps += [(4, size_mb) for size_mb in sizes_mb[1:]]
    for partitions, size_mb in steps:
        shape = plain(
            f"growth-{partitions}-{size_mb}", GROWTH_VALUE_BYTES, size_mb * MB // GROWTH_VALUE_BYTES
        )
        topic = ground.make_topic(shape.name, partitions)
        fill(ground.session, ground.bootstrap, topic, shape)
        text = f"noop, {partitions} partitions, {size_mb:,} MB"
        yield Growth(
            partitions, size_mb, Race(Metric(text, "s", SCAN_TARGET), noop(ground, topic)).run(rounds)
        )


def main() -> None:
    """Run what was asked for, and write the document when that was everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the rows, little growth, no document"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("batch", "other", "growth"), help="a part, no document")
    options = parser.parse_args()
    scale = 0.1 if options.quick else 1.0
    results: list[Result] = []
    growth: list[Growth] = []
    with running_ground() as ground:
        if options.only in (None, "batch"):
            results += [
                race.run(options.rounds) for shape in shapes(scale) for race in races_of(ground, shape)
            ]
        if options.only in (None, "other"):
            results += [race.run(options.rounds) for race in other_races(ground, scale)]
        if options.only in (None, "growth"):
            growth += grown(ground, GROWTH_MB_QUICK if options.quick else GROWTH_MB, options.rounds)
    if options.quick or options.only:
        print(document(results, growth, options.rounds, machine(), ""))
    else:
        text = document(results, growth, options.rounds, machine(), record_kernels.table())
        DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
