"""Metrics in Prometheus' text format. Parts keep plain numbers, which are collected at each scrape."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from barnabas.telemetry import names
from barnabas.telemetry.logs import get_logger
from barnabas.telemetry.names import Kind, MetricName
from barnabas.telemetry.requests import LATENCY_BOUNDS_SECONDS, RequestStatistics

#: The version of the text format that every Prometheus reads.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = dict[str, str]
Values = Iterable[tuple[Labels, float]]
#: One line of the text format: name (with suffix, for histograms), labels and value.
Sample = tuple[str, Labels, float]
#: Returns the samples of some metrics; a missing metric has none.
Collect = Callable[[], Mapping[MetricName, Iterable[Sample]]]

_NAME = re.compile(r"barnabas_[a-z0-9_]*[a-z0-9]")
_BOUNDS = (*map(str, LATENCY_BOUNDS_SECONDS), "+Inf")

_log = get_logger("barnabas.metrics")


class Family(NamedTuple):
    """All samples of one metric at one collection."""

    metric: MetricName
    samples: list[Sample]


class MetricsRegistry:
    """The metrics of one broker. Collectors run one after the other, in the thread that scrapes."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._collectors: list[tuple[Sequence[MetricName], Collect]] = []

    def add(self, name: str, help: str, kind: Kind, collect: Callable[[], Values]) -> None:  # noqa: A002
        """Add a counter or gauge; `collect` returns a value for each current set of labels."""
        self.add_metric(MetricName(name, help, kind), collect)

    def add_metric(self, metric: MetricName, collect: Callable[[], Values]) -> None:
        """Add a counter or gauge of the table in `barnabas.telemetry.names`."""
        self.add_together((metric,), lambda: {metric: collect()})

    def add_together(
        self, metrics: Sequence[MetricName], collect: Callable[[], Mapping[MetricName, Values]]
    ) -> None:
        """Add counters and gauges that one call collects; those that `collect` leaves out have no lines."""
        assert all(metric.kind in ("counter", "gauge") for metric in metrics), metrics
        self._add(
            metrics,
            lambda: {metric: _plain_samples(metric, values) for metric, values in collect().items()},
        )

    def add_samples(self, metric: MetricName, collect: Callable[[], Iterable[Sample]]) -> None:
        """Add a metric of any type, such as a histogram, that is collected line by line."""
        self._add((metric,), lambda: {metric: collect()})

    def _add(self, metrics: Sequence[MetricName], collect: Collect) -> None:
        for metric in metrics:
            assert _NAME.fullmatch(metric.name), metric
            assert (metric.kind == "counter") == metric.name.endswith("_total"), metric
            assert metric.name not in self._names, metric
            self._names.add(metric.name)
        self._collectors.append((metrics, collect))

    def snapshot(self) -> list[Family]:
        """Collect everything. A failing collector loses only its own lines, and is logged."""
        return [family for metrics, collect in self._collectors for family in _collected(metrics, collect)]

    def render(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return exposition(self.snapshot())


def _plain_samples(metric: MetricName, values: Values) -> Iterable[Sample]:
    return ((metric.name, labels, value) for labels, value in values)


def _collected(metrics: Sequence[MetricName], collect: Collect) -> list[Family]:
    try:
        samples = collect()
        return [Family(metric, list(samples.get(metric, ()))) for metric in metrics]
    except Exception:
        _log.exception("cannot collect a metric", metric=", ".join(each.name for each in metrics))
        return [Family(metric, []) for metric in metrics]


def exposition(families: Iterable[Family]) -> bytes:
    """Return the families in Prometheus' text format. Reads only `families`, so any thread may call it."""
    from prometheus_client.exposition import generate_latest
    from prometheus_client.metrics_core import Metric
    from prometheus_client.registry import Collector

    class Collected(Collector):
        def collect(self) -> Iterator[Metric]:
            for metric, samples in families:
                family = Metric(metric.name.removesuffix("_total"), metric.help, metric.kind)
                for sample in samples:
                    family.add_sample(*sample)
                yield family

    return generate_latest(Collected())


def request_metrics(
    registry: MetricsRegistry, statistics: RequestStatistics, api_names: Mapping[int, str]
) -> None:
    """Add the metrics of `statistics`; `api_names` are the values of the label `api`, by API key."""

    def per_api(count: Callable[[int], int]) -> Callable[[], Values]:
        return lambda: [({"api": _api_name(key, api_names)}, count(key)) for key in sorted(statistics.apis)]

    apis, crashes = statistics.apis, statistics.crashes
    registry.add_metric(names.REQUESTS, per_api(lambda key: apis[key].requests_count))
    registry.add_metric(names.REQUEST_ERRORS, per_api(lambda key: apis[key].errors_count))
    registry.add_metric(names.REQUEST_CRASHES, lambda: [({"api": api}, n) for api, n in crashes.items()])
    registry.add_samples(names.REQUEST_SECONDS, lambda: _latency_samples(statistics, api_names))
    registry.add_metric(names.BYTES_IN, lambda: [({}, statistics.in_bytes)])
    registry.add_metric(names.BYTES_OUT, lambda: [({}, statistics.out_bytes)])


def _api_name(api_key: int, api_names: Mapping[int, str]) -> str:
    return api_names.get(api_key, str(api_key))


def _latency_samples(statistics: RequestStatistics, api_names: Mapping[int, str]) -> Iterator[Sample]:
    name = names.REQUEST_SECONDS.name
    for key, api in sorted(statistics.apis.items()):
        labels = {"api": _api_name(key, api_names)}
        for bound, count in zip(_BOUNDS, accumulate(api.buckets), strict=True):
            yield f"{name}_bucket", {**labels, "le": bound}, count
        yield f"{name}_count", labels, api.requests_count
        yield f"{name}_sum", labels, api.total_ns / 1_000_000_000
