"""docs/benchmarks-spark.md: how it was measured, where, and the tables."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.report import Result, table


@dataclass(frozen=True)
class Growth:
    """One size of a topic, and what reading it took."""

    partitions: int
    size_mb: int
    result: Result


def document(
    results: Sequence[Result],
    growth: Sequence[Growth],
    rounds: int,
    machine: Mapping[str, str],
    kernels: str,
) -> str:
    """The whole document."""
    where = "\n".join(f"- {name}: {value}" for name, value in machine.items())
    grown = "\n".join(_growth_line(each) for each in growth)
    return f"""# Benchmarks of Spark

Written by `make bench-spark` (`bench/spark`). One Spark session in local mode with two cores runs the same queries on
the same topics of one Barnabas, with `format("kafka")` (Spark's own connector, 4.2.0 on Spark 4.3, Kafka's client
3.9.1) and with `format("barnabas")`, and nothing else changed. Topics are written by Spark's connector. Each query runs
once unmeasured on either side, then {rounds} times, the two taking turns at going first. Shown are medians in seconds,
with the lowest and highest in parentheses, and the ratio of the medians: below 1, Barnabas's is quicker. The broker,
Spark and its Python workers share the machine.

{where}

{table(results, "connector", "barnabas", "barnabas / connector")}

## Growth
Records of 1 KiB, every column of which is read:

| partitions | MB | connector | barnabas | barnabas MB/s | barnabas / connector |
|---|---|---|---|---|---|
{grown}

## Kernels
On one core, without Spark: what records become Arrow columns at, and Arrow columns records (`bench/record_kernels.py`).

{kernels}
"""


def _growth_line(growth: Growth) -> str:
    theirs_s = statistics.median(growth.result.baseline)
    ours_s = statistics.median(growth.result.barnabas)
    return (
        f"| {growth.partitions} | {growth.size_mb:,} | {theirs_s:.3g} s | {ours_s:.3g} s "
        f"| {growth.size_mb / ours_s:,.0f} | **{growth.result.ratio:.2f}** |"
    )
