"""docs/benchmarks-spark.md: method, machine, and the tables."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.report import Result, spread
from bench.spark.rewriting import Rewriting

GROWTH_HEAD = """| partitions | MB | connector | barnabas | barnabas MB/s | barnabas / connector | of processor s |
|---|---|---|---|---|---|---|"""


@dataclass(frozen=True)
class Outcome:
    """Times of a query on both sides by round: wall time, and CPU time of all processes."""

    clock: Result
    processors: Result


@dataclass(frozen=True)
class Growth:
    """One size of a topic, and the time of reading it."""

    partitions: int
    size_mb: int
    outcome: Outcome


@dataclass(frozen=True)
class Runs:
    """Number of runs of a query on each side."""

    unmeasured: int
    unmeasured_growth: int  #: those of the table of growth, whose query is one of the others
    measured: int


def document(
    outcomes: Sequence[Outcome],
    growth: Sequence[Growth],
    rewritings: Sequence[Rewriting],
    runs: Runs,
    machine: Mapping[str, str],
    kernels: str,
) -> str:
    where = "\n".join(f"- {name}: {value}" for name, value in machine.items())
    lines = "\n".join(_line(each) for each in outcomes)
    grown = "\n".join(growth_line(each) for each in growth)
    rewritten = "\n".join(_rewriting_line(each) for each in rewritings)
    return f"""# Benchmarks of Spark

Written by `make bench-spark` (`bench/spark`). One Spark session in local mode with two cores runs the same queries on
the same topics of one Barnabas, with `format("kafka")` (Spark's own connector, 4.2.0 on Spark 4.3, Kafka's client
3.9.1) and with `format("barnabas")`, and nothing else changed. It is one of `spark_session`, which talks to Python over
Unix domain sockets and reads Arrow's columns without a look at bounds for each value. Topics are written by Spark's
connector. Each query runs {runs.unmeasured} times unmeasured on either side, then {runs.measured} times, the two
taking turns at going first. Shown are medians in seconds, with the lowest and highest in parentheses, and the ratio
of the medians: below 1, Barnabas's is quicker. The broker, Spark and its Python workers share the machine; the
seconds of its processors that all of them used together (medians) tell how much work there was, however busy the
machine was with something else.

{where}

| query | connector, s | barnabas, s | barnabas / connector | target | reached | processor s | barnabas | ratio |
|---|---|---|---|---|---|---|---|---|
{lines}

## Growth
Records of 1 KiB, every column of which is read, {runs.unmeasured_growth} times unmeasured first.
The connector waits a while even for a few records, which counts less the more there are. A line for 10 GB is of a run
by itself, with fewer rounds: `make bench-spark ARGS='--only large --rounds 3'`.

{GROWTH_HEAD}
{grown}

## Rewriting
Records of 1 KiB, five of each key, from the command's begin until the broker serves what was written, once.

| what | MB | s | MB/s |
|---|---|---|---|
{rewritten}

## Kernels
On one core, without Spark: what records become Arrow columns at, and Arrow columns records (`bench/record_kernels.py`).

{kernels}
"""


def with_growth(text: str, growth: Growth) -> str:
    """Return the document with one more row in its table of growth, which replaces any row of that size."""
    before, head, behind = text.partition(GROWTH_HEAD + "\n")
    assert head, "the document has no table of growth"
    rows, gap, rest = behind.partition("\n\n")
    size = f"| {growth.partitions} | {growth.size_mb:,} |"
    kept = [row for row in rows.splitlines() if not row.startswith(size)]
    return before + head + "\n".join([*kept, growth_line(growth)]) + gap + rest


def growth_line(growth: Growth) -> str:
    """Format a row of the table of growth."""
    clock, processors = growth.outcome.clock, growth.outcome.processors
    theirs_s, ours_s = statistics.median(clock.baseline), statistics.median(clock.barnabas)
    return (
        f"| {growth.partitions} | {growth.size_mb:,} | {theirs_s:.3g} s | {ours_s:.3g} s "
        f"| {growth.size_mb / ours_s:,.0f} | **{clock.ratio:.2f}** | {processors.ratio:.2f} |"
    )


def _rewriting_line(rewriting: Rewriting) -> str:
    size_mb, taken_s = rewriting.size_mb, rewriting.taken_s
    return f"| {rewriting.text} | {size_mb:,} | {taken_s:.3g} | {size_mb / taken_s:,.0f} |"


def _line(outcome: Outcome) -> str:
    clock, processors = outcome.clock, outcome.processors
    metric = clock.metric
    target = "" if metric.target is None else f"≤ {metric.target:g}"
    reached = {True: "yes", False: "no", None: ""}[metric.wait_for_revision(clock.ratio)]
    theirs_s, ours_s = statistics.median(processors.baseline), statistics.median(processors.barnabas)
    return (
        f"| {metric.text} | {spread(clock.baseline)} | {spread(clock.barnabas)} | **{clock.ratio:.2f}** "
        f"| {target} | {reached} | {theirs_s:.3g} | {ours_s:.3g} | {processors.ratio:.2f} |"
    )
