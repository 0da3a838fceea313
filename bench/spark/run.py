"""Measure queries with both connectors alternately: ``python -m bench.spark.run [--quick] [--rounds N] [--only
NAME]``.

Everything takes about half an hour on two cores, and 6 GB of disk; ``--only large`` ten more minutes, and 12 GB.
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from bench import record_kernels
from bench.measures import Metric
from bench.process import family_cpu_s
from bench.report import Result, machine
from bench.spark.queries import (
    OURS,
    THEIRS,
    Ground,
    Timed,
    aggregated,
    count_rows,
    joined,
    micro_batch,
    noop,
    parquet,
    parsed,
    parsed_parquet,
    sum_of_lengths,
    write,
)
from bench.spark.report import (
    Growth,
    Outcome,
    Runs,
    document,
    growth_line,
    slots_section,
    with_growth,
    with_section,
    work_section,
)
from bench.spark.rewriting import Rewriting, rewritings
from bench.spark.topics import MB, Shape, cheap, fill, plain, shapes, wide
from interop import candidate, connector
from pyspark_barnabas.runtime.session import spark_session

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "benchmarks-spark.md"
READ_TARGET = 0.5
#: Spark's master, and one with more slots than the topics have partitions.
MASTER, SLOTS_MASTER = "local[2]", "local[8]"
SCAN_TARGET = 0.4  #: of queries that only count rows
WORK_TARGET = 0.8  #: of queries that parse, aggregate and join
LATENCY_TARGET = 1.2
WRITE_TARGET = 0.8
PARTITIONS = 2
#: One partition to sixteen of the first size; then megabytes of values in four partitions.
GROWTH_PARTITIONS = (1, 2, 4, 8, 16)
GROWTH_MB = (100, 300, 1_000)
GROWTH_MB_QUICK = (10, 40)
LARGE = (4, 10_000)
GROWTH_VALUE_BYTES = 1024
REWRITTEN_MB = 1_000
WARM_UP_ROUNDS = 2
#: Java's compilers run beside the first runs of a query, on the same two cores, which weighs most on the faster side:
#: for Parquet they take half a second of CPU time in the first runs, a fifth in the tenth and a tenth from the
#: twentieth on.
UNMEASURED_RUNS = 20
#: Queries with real work take ten times as long, and are compiled within a few runs.
UNMEASURED_WORK_RUNS = 5
#: The query of growing topics has already run as a query of its own.
UNMEASURED_GROWTH_RUNS = 10
STARTED_S = time.monotonic()

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
    """One query, and its times on both sides in seconds, by round."""

    metric: Metric
    timed: Timed
    clock_s: dict[str, list[float]] = field(default_factory=lambda: {THEIRS: [], OURS: []})
    processors_s: dict[str, list[float]] = field(default_factory=lambda: {THEIRS: [], OURS: []})

    def run(self, rounds: int, unmeasured: int = UNMEASURED_RUNS) -> Outcome:
        """Warm both up, then let them alternate."""
        for _ in range(unmeasured):
            for name in (THEIRS, OURS):
                self.timed(name)
        for number in range(rounds):
            for name in (THEIRS, OURS) if number % 2 else (OURS, THEIRS):
                before_s = family_cpu_s(os.getpid())
                self.clock_s[name].append(self.timed(name))
                self.processors_s[name].append(family_cpu_s(os.getpid()) - before_s)
        outcome = Outcome(self._result(self.clock_s), self._result(self.processors_s))
        taken = ", ".join(
            f"{name} {' '.join(f'{each:.2f}' for each in clock_s)}" for name, clock_s in self.clock_s.items()
        )
        ratios = f"{outcome.clock.ratio:.2f}, of processors {outcome.processors.ratio:.2f}"
        print_progress(f"{self.metric.text}: {taken}; ratio {ratios}")
        return outcome

    def _result(self, taken_s: dict[str, list[float]]) -> Result:
        return Result(self.metric, taken_s[THEIRS], taken_s[OURS])


def print_progress(what: str) -> None:
    print(f"{time.monotonic() - STARTED_S:5.0f} s  {what}", flush=True)


@contextmanager
def running_ground(master: str, more: Mapping[str, str]) -> Iterator[Ground]:
    """Run a broker, and a session with both formats."""
    home = Path(tempfile.mkdtemp(prefix="bench-spark-"))
    try:
        broker = candidate.start(home)
        try:
            partitions = {"spark.local.dir": f"{home}/local", "spark.sql.warehouse.dir": f"{home}/warehouse"}
            settings = {**SETTINGS, **partitions, **connector.settings(), **more}
            session = spark_session("bench", master=master, settings=settings)
            try:
                yield Ground(session, broker.bootstrap, home, broker.data_dir)
            finally:
                session.stop()
        finally:
            broker.stop()
    finally:
        shutil.rmtree(home)


def filled(ground: Ground, shape: Shape, partitions: int = PARTITIONS) -> str:
    """Create and fill a topic of that shape, and flush it before anything is measured."""
    print_progress(f"writing {shape.text} to {partitions} partitions")
    topic = ground.make_topic(shape.name, partitions)
    fill(ground.session, ground.bootstrap, topic, shape)
    os.sync()
    return topic


def warm_up(ground: Ground) -> None:
    """Compile what Spark compiles for its first queries on neither side's account."""
    topic = filled(ground, plain("warm-up", 100, 100_000))
    for _ in range(WARM_UP_ROUNDS):
        for query in (count_rows, sum_of_lengths, noop, parquet):
            for name in (THEIRS, OURS):
                query(ground, topic)(name)


def races_of(ground: Ground, shape: Shape) -> Iterator[Race]:
    """Return the queries on one kind of records."""
    topic = filled(ground, shape)
    yield Race(Metric(f"count, {shape.text}", "s", SCAN_TARGET), count_rows(ground, topic))
    yield Race(Metric(f"sum of lengths, {shape.text}", "s", READ_TARGET), sum_of_lengths(ground, topic))
    yield Race(Metric(f"noop, {shape.text}", "s", SCAN_TARGET), noop(ground, topic))
    yield Race(Metric(f"Parquet, {shape.text}", "s", READ_TARGET), parquet(ground, topic))


def work_races(ground: Ground, scale: float) -> Iterator[Race]:
    """Return the queries with real work."""
    shape = wide(int(100_000 * scale))
    topic = filled(ground, shape)
    for text, query in (
        ("from_json", parsed),
        ("from_json and aggregation", aggregated),
        ("from_json and join", joined),
        ("from_json into Parquet", parsed_parquet),
    ):
        yield Race(Metric(f"{text}, {shape.text}", "s", WORK_TARGET), query(ground, topic))


def other_races(ground: Ground, scale: float) -> Iterator[Race]:
    """Return the measurements other than batch reads."""
    small = plain("micro", 100, max(int(400_000 * scale), 100_000))
    topic = filled(ground, small)
    yield Race(
        Metric("micro-batch of 20,000 rows into Parquet", "s", LATENCY_TARGET), micro_batch(ground, topic)
    )
    written = cheap("written", 100, int(2_000_000 * scale))
    yield Race(
        Metric(f"write, {written.text}, exactly once against at least once", "s", WRITE_TARGET),
        write(ground, written, PARTITIONS),
    )


def sizes(scale: float) -> list[tuple[int, int]]:
    """Return partitions and megabytes of the topics of growing sizes."""
    first_mb, *more_mb = GROWTH_MB if scale == 1 else GROWTH_MB_QUICK
    return [(partitions, first_mb) for partitions in GROWTH_PARTITIONS] + [(4, each) for each in more_mb]


def grown(ground: Ground, partitions: int, size_mb: int, rounds: int) -> Growth:
    """Measure the noop query on a topic of that size, which is deleted afterwards."""
    text = f"{size_mb:,} MB in records of 1 KiB"
    shape = plain(f"growth-{partitions}-{size_mb}", GROWTH_VALUE_BYTES, size_mb * MB // GROWTH_VALUE_BYTES)
    topic = filled(ground, shape, partitions)
    metric = Metric(f"noop, {partitions} partitions, {text}", "s", SCAN_TARGET)
    growth = Growth(
        partitions, size_mb, Race(metric, noop(ground, topic)).run(rounds, UNMEASURED_GROWTH_RUNS)
    )
    ground.delete_topic(topic)
    return growth


class Measured(NamedTuple):
    outcomes: list[Outcome]
    work: list[Outcome]
    growth: list[Growth]
    rewritten: list[Rewriting]


def measure(options: argparse.Namespace) -> Measured:
    scale = 0.1 if options.quick else 1.0
    outcomes: list[Outcome] = []
    work: list[Outcome] = []
    growth: list[Growth] = []
    rewritten: list[Rewriting] = []
    settings = dict(each.split("=", 1) for each in options.set)
    with running_ground(options.master, settings) as ground:
        warm_up(ground)
        if options.only in (None, "batch"):
            outcomes += [
                race.run(options.rounds) for shape in shapes(scale) for race in races_of(ground, shape)
            ]
        if options.only in (None, "slots", "work"):
            work += [race.run(options.rounds, UNMEASURED_WORK_RUNS) for race in work_races(ground, scale)]
        if options.only in (None, "other"):
            outcomes += [race.run(options.rounds) for race in other_races(ground, scale)]
        if options.only in (None, "growth"):
            growth += [grown(ground, *size, options.rounds) for size in sizes(scale)]
        if options.only == "large":
            growth.append(grown(ground, *LARGE, options.rounds))
        if options.only in (None, "rewriting"):
            rewritten += rewritings(ground, int(REWRITTEN_MB * scale), print_progress)
    return Measured(outcomes, work, growth, rewritten)


def main() -> None:
    """Measure, and write the document when everything was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the rows, little growth, no document"
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--only",
        choices=("batch", "work", "slots", "other", "growth", "large", "rewriting"),
        help="a part, which large, slots and work write into the document",
    )
    parser.add_argument("--master", help=f"Spark's master (default: {MASTER}, for slots {SLOTS_MASTER})")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark for both"
    )
    options = parser.parse_args()
    options.master = options.master or (SLOTS_MASTER if options.only == "slots" else MASTER)
    where = {**machine(), "Spark's master": options.master, "load when it began": f"{os.getloadavg()[0]:.1f}"}
    runs = Runs(UNMEASURED_RUNS, UNMEASURED_WORK_RUNS, UNMEASURED_GROWTH_RUNS, options.rounds)
    measured = measure(options)
    if options.quick:
        print(document(*measured, runs, where, ""))
    elif options.only == "large":
        print(growth_line(measured.growth[0]))
        DOCUMENT.write_text(
            with_growth(DOCUMENT.read_text(encoding="utf-8"), measured.growth[0]), encoding="utf-8"
        )
    elif options.only in ("slots", "work"):
        make_section = slots_section if options.only == "slots" else work_section
        section = make_section(measured.work, runs, where)
        print(section)
        DOCUMENT.write_text(with_section(DOCUMENT.read_text(encoding="utf-8"), section), encoding="utf-8")
    elif options.only:
        print(document(*measured, runs, where, ""))
    else:
        print_progress("decoding and encoding")
        text = document(*measured, runs, where, record_kernels.table())
        DOCUMENT.write_text(text, encoding="utf-8")
    print_progress("done")


if __name__ == "__main__":
    main()
