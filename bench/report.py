"""Medians, ratios, and the table that people read."""

import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measures import Metric


@dataclass(frozen=True)
class Result:
    """What the rounds gave for one metric, Kafka's and Barnabas's values in the order of the rounds."""

    metric: Metric
    kafka: Sequence[float]
    barnabas: Sequence[float]

    @property
    def ratio(self) -> float:
        """Barnabas's median over Kafka's."""
        return statistics.median(self.barnabas) / statistics.median(self.kafka)


def table(results: Sequence[Result]) -> str:
    """The results as a Markdown table: medians, ranges, the ratio and the target."""
    lines = [
        "| measure | unit | Kafka | Barnabas | Barnabas / Kafka | target | reached |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *(_line(result) for result in results)])


def _line(result: Result) -> str:
    metric = result.metric
    bound = "≥" if metric.more_is_better else "≤"
    reached = "yes" if metric.reached(result.ratio) else "no"
    return (
        f"| {metric.text} | {metric.unit} | {_values(result.kafka)} | {_values(result.barnabas)} "
        f"| **{result.ratio:.2f}** | {bound} {metric.target:g} | {reached} |"
    )


def _values(values: Sequence[float]) -> str:
    if len(values) == 1:
        return _number(values[0])
    return f"{_number(statistics.median(values))} ({_number(min(values))}-{_number(max(values))})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def document(results: Sequence[Result], rounds: int, machine: Mapping[str, str]) -> str:
    """docs/benchmarks.md: how it was measured, where, and the table."""
    where = "\n".join(f"- {name}: {value}" for name, value in machine.items())
    return f"""# Benchmarks

Written by `make bench` (`bench/run.py`). Apache Kafka 4.3.1 (one JVM, its start script's options, its default settings)
and Barnabas are measured in turns, on one machine, by the same clients: Kafka's own Java producer for the CPU of
produced records, and a raw load generator in Go (`bench/loadgen`), which builds its requests once, for the rest. For
each measure both brokers start on empty directories, each has one unmeasured round to warm up, and then come {rounds}
rounds in which they take turns at going first. Shown are the medians, with the lowest and highest round in
parentheses. Broker CPU is user and system time of the whole process. Latency counts from the moment when a request
was due.

{where}

{table(results)}
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
