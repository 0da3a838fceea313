"""Metrics of tables for Prometheus."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from barnabas.tables.service import TableStatus

_PREFIX = "barnabas_table_"
_GAUGES: Mapping[str, tuple[str, Callable[[TableStatus], float | None]]] = {
    "failed": ("Whether the last pass failed.", lambda status: status.state == "failed"),
    "lag_seconds": (
        "Age of the oldest record that the table may lack.",
        lambda status: None if status.lag_ms is None else status.lag_ms / 1000,
    ),
}
_COUNTERS: Mapping[str, tuple[str, Callable[[TableStatus], float]]] = {
    "commits": ("Commits of records.", lambda status: status.counts.commits_count),
    "rows": ("Rows that were committed.", lambda status: status.counts.rows_count),
    "rejected_rows": (
        "Rows whose key or value could not be decoded.",
        lambda status: status.counts.rejected_rows_count,
    ),
    "read_bytes": ("Bytes that were fetched.", lambda status: status.counts.read_bytes),
    "lost_records": (
        "Offsets that were removed from the topic before they were read.",
        lambda status: status.counts.lost_records_count,
    ),
    "conflicts": (
        "Passes that ended because another service had committed first.",
        lambda status: status.counts.conflicts_count,
    ),
    "joined_files": ("Small files that were joined.", lambda status: status.counts.joined_files_count),
    "deleted_rows": ("Rows that were deleted by age.", lambda status: status.counts.deleted_rows_count),
    "deleted_files": (
        "Deleted files that were not part of any version of the table.",
        lambda status: status.counts.deleted_files_count,
    ),
}


class TableCollector:
    """Reads the statuses for each scrape."""

    def __init__(self, statuses: Callable[[], Sequence[TableStatus]]) -> None:
        self._statuses = statuses

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics, labelled by topic."""
        statuses = self._statuses()
        for name, (help_text, measured) in _GAUGES.items():
            gauge = GaugeMetricFamily(f"{_PREFIX}{name}", help_text, labels=["topic"])
            for status in statuses:
                value = measured(status)
                if value is not None:
                    gauge.add_metric([status.topic], value)
            yield gauge
        for name, (help_text, counted) in _COUNTERS.items():
            counter = CounterMetricFamily(f"{_PREFIX}{name}", help_text, labels=["topic"])
            for status in statuses:
                counter.add_metric([status.topic], counted(status))
            yield counter


@contextmanager
def metrics_server(host: str, port: int, statuses: Callable[[], Sequence[TableStatus]]) -> Iterator[int]:
    """Serve the metrics; the value is the port.

    :raises OSError: If the address cannot be used.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(TableCollector(statuses))
    server, thread = start_http_server(port, addr=host, registry=registry)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
