"""Metrics of flows for Prometheus, on loopback."""

from collections.abc import Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Self

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from pyspark_barnabas.pipelines.state import FlowState, FlowStatus

_PREFIX = "barnabas_pipeline_"


def families(statuses: Collection[FlowStatus]) -> Iterable[Metric]:
    """Yield gauges, labelled by flow."""
    numbers: Mapping[str, tuple[str, Callable[[FlowStatus], float | None]]] = {
        "running": ("Whether the flow runs", lambda status: status.state is FlowState.RUNNING),
        "failed": ("Whether the flow has failed", lambda status: status.state is FlowState.FAILED),
        "batch": ("Last written batch", lambda status: status.batch),
        "rows_read": ("Rows read in this run", lambda status: status.rows_in),
        "rows_written": ("Rows written in this run", lambda status: status.rows_out),
        "dead_letters": ("Dead letters of this run", lambda status: status.dead_letters),
        "rows_dropped": ("Rows dropped in this run", lambda status: status.dropped),
        "rows_per_second": ("Rows read a second in the last batch", lambda status: status.rows_per_second),
        "lag_records": ("Unread records", lambda status: status.lag),
    }
    for name, (help_text, number) in numbers.items():
        family = GaugeMetricFamily(f"{_PREFIX}{name}", help_text, labels=["flow"])
        for status in statuses:
            value = number(status)
            if value is not None:
                family.add_metric([status.flow], value)
        yield family


class PipelineMetricsServer:
    """Serves the last statuses that it was given."""

    def __init__(self, port: int) -> None:
        self._statuses: Collection[FlowStatus] = ()
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        self._server, self._thread = start_http_server(port, addr="127.0.0.1", registry=registry)
        self.port: int = self._server.server_port

    def take(self, statuses: Collection[FlowStatus]) -> None:
        """Replace the statuses."""
        self._statuses = statuses

    def collect(self) -> Iterable[Metric]:
        """Return the samples for a scrape."""
        return families(self._statuses)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
