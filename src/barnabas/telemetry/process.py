"""Metrics of the operating system about this process."""

import os
from pathlib import Path

from barnabas.telemetry import names
from barnabas.telemetry.metrics import MetricsRegistry, Values

_STATM = Path("/proc/self/statm")
_RESIDENT_FIELD = 1  #: index in /proc/self/statm, see proc(5); in pages


def process_metrics(registry: MetricsRegistry) -> None:
    """Add this process's memory (where there is a /proc) and processor time."""
    registry.add_metric(names.PROCESS_RESIDENT_MEMORY, _resident_memory)
    registry.add_metric(names.PROCESS_CPU, _cpu)


def _resident_memory() -> Values:
    if _STATM.exists():
        pages = int(_STATM.read_text().split()[_RESIDENT_FIELD])
        yield {}, pages * os.sysconf("SC_PAGE_SIZE")


def _cpu() -> Values:
    times = os.times()
    yield {}, times.user + times.system
