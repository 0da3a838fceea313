"""Medians, ratios, and the table that people read."""

import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measures import Metric

ACL_DECISION_US_MAX = 2.0


@dataclass(frozen=True)
class Result:
    """What the rounds gave for one metric, the baseline's and Barnabas's values in the order of the rounds."""

    metric: Metric
    baseline: Sequence[float]  #: Kafka's, or Barnabas's as it is without what is measured
    barnabas: Sequence[float]
    against_itself: bool = False

    @property
    def ratio(self) -> float:
        """Barnabas's median over the baseline's."""
        return statistics.median(self.barnabas) / statistics.median(self.baseline)


def tables(results: Sequence[Result]) -> str:
    """The results as Markdown tables: against Kafka, and against Barnabas without what is measured."""
    against_kafka = [result for result in results if not result.against_itself]
    against_itself = [result for result in results if result.against_itself]
    parts = []
    if against_kafka:
        parts.append(table(against_kafka, "Kafka", "Barnabas", "Barnabas / Kafka"))
    if against_itself:
        parts.append(table(against_itself, "without", "with", "with / without"))
    return "\n\n".join(parts)


def table(results: Sequence[Result], baseline: str, barnabas: str, ratio: str) -> str:
    """Medians, ranges, the ratio and the target, under the names of the columns."""
    lines = [
        f"| measure | unit | {baseline} | {barnabas} | {ratio} | target | reached |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *(_line(result) for result in results)])


def _line(result: Result) -> str:
    metric = result.metric
    bound = "≥" if metric.more_is_better else "≤"
    target = "none" if metric.target is None else f"{bound} {metric.target:g}"
    reached = {True: "yes", False: "no", None: ""}[metric.wait_for_revision(result.ratio)]
    return (
        f"| {metric.text} | {metric.unit} | {spread(result.baseline)} | {spread(result.barnabas)} "
        f"| **{result.ratio:.2f}** | {target} | {reached} |"
    )


def spread(values: Sequence[float]) -> str:
    """The median, with the lowest and the highest."""
    if len(values) == 1:
        return _number(values[0])
    return f"{_number(statistics.median(values))} ({_number(min(values))}-{_number(max(values))})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def document(
    results: Sequence[Result],
    rounds: int,
    machine: Mapping[str, str],
    acl_decision_us: Mapping[str, float],
    compaction_kernel: str,
    validation: str,
) -> str:
    """docs/benchmarks.md: how it was measured, where, and the tables."""
    decisions = "\n".join(
        f"| {kind} | {time_us:.2f} | {ACL_DECISION_US_MAX:g} | {'yes' if time_us < ACL_DECISION_US_MAX else 'no'} |"
        for kind, time_us in acl_decision_us.items()
    )
    where = "\n".join(f"- {name}: {value}" for name, value in machine.items())
    return f"""# Benchmarks

Written by `make bench` (`bench/run.py`). Apache Kafka 4.3.1 (one JVM, its start script's options, its default settings)
and Barnabas are measured in turns, on one machine, by the same clients: Kafka's own Java producer for the CPU of
produced records, and a raw load generator in Go (`bench/loadgen`) for the rest. Its one-record requests have the
shapes of real producers (`bench/mixture.py`): keys over 1, 6 and 100 partitions, versions 7 to 13, values of 20 B to
4 KiB, 1 to 64 requests in flight on 1 to 500 connections, with sequences or without. The two lines for all of them
count as many requests of each shape. For each measure both brokers start on empty directories, each has one unmeasured
round to warm up, and then come {rounds}
rounds in which they take turns at going first. Shown are the medians, with the lowest and highest round in
parentheses. Broker CPU is user and system time of the whole process. Latency counts from the moment when a request
was due. While records are produced for the CPU and the rate of requests, the page cache is given memory that has been
touched before (`bench/warm_memory.py`): on a virtual machine that gives free memory back to its host, a fault in the
host would cost either broker several times its own work.

{where}

{tables(results)}

A decision of the authorizer among 10,000 ACLs, within one process (`bench/acl_decisions.py`):

| question | µs | below | reached |
|---|---|---|---|
{decisions}

Compaction on one core (`bench/compaction_kernel.py`): million records a second that are read as objects, and as
columns; then microseconds of processor time for a record in a whole pass over 100,000 records of 50,000 keys. The
kernels run as plain Python, as where there was no C compiler; compiled with one; and compiled by numba. In plain Python
the offset map is a dictionary.

{compaction_kernel}

Checking the records of a produced batch of 64 KiB, within one process: microseconds of processor time for a record, the
best of seven rounds (`bench/validation.py`). The whole check has the header, the CRC, the
unpacking and the compiled walk.

{validation}
"""


def machine() -> dict[str, str]:
    """What the numbers depend on: processor, cores, kernel, Python."""
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
