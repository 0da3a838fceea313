"""The last metrics that clients pushed (KIP-714), for /metrics; limited in number."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from barnabas.telemetry.otlp import Attributes, DataPoint, DataPointKind

#: Series per client, and of all clients together; further ones are dropped and counted.
CLIENT_SERIES_COUNT_MAX = 1000
SERIES_COUNT_MAX = 50_000

#: Characters of the names and attributes of all series together. Any client may push, and a few bytes decompress to
#: many.
CHARACTERS_COUNT_MAX = 20_000_000

#: Attributes of one data point that become labels; others are left out.
LABELS_COUNT_MAX = 16

_NO_LABEL = re.compile(r"[^a-zA-Z0-9_]")

Series = tuple[str, Attributes]  #: a metric's name and its data point's attributes


@dataclass(slots=True)
class _Client:
    """One client's metrics."""

    labels: Mapping[str, str]
    gauges: dict[Series, float] = field(default_factory=dict)
    sums: dict[Series, float] = field(default_factory=dict)

    @property
    def series_count(self) -> int:
        return len(self.gauges) + len(self.sums)

    @property
    def characters_count(self) -> int:
        return sum(map(_characters, (*self.gauges, *self.sums)))


class ClientMetrics:
    """The last metrics of each client, by client instance id."""

    def __init__(self) -> None:
        self._clients: dict[bytes, _Client] = {}
        self._series_count = self._characters_count = 0
        self.dropped_count = 0  #: dropped data points

    def push(self, instance_id: bytes, labels: Mapping[str, str], points: Iterable[DataPoint]) -> None:
        """Store what a client has pushed; `labels` identify the client."""
        client = self._clients.setdefault(instance_id, _Client(labels))
        client.labels = labels
        for point in points:
            table = client.gauges if point.kind is DataPointKind.GAUGE else client.sums
            series = (point.metric, point.attributes[:LABELS_COUNT_MAX])
            if series not in table:
                characters = _characters(series)
                if (
                    client.series_count >= CLIENT_SERIES_COUNT_MAX
                    or self._series_count >= SERIES_COUNT_MAX
                    or self._characters_count + characters > CHARACTERS_COUNT_MAX
                ):
                    self.dropped_count += 1
                    continue
                self._series_count += 1
                self._characters_count += characters
            before = table.get(series, 0.0) if point.kind is DataPointKind.DELTA else 0.0
            table[series] = before + point.value

    def remove(self, instance_id: bytes) -> None:
        client = self._clients.pop(instance_id, None)
        if client is not None:
            self._series_count -= client.series_count
            self._characters_count -= client.characters_count

    def gauges(self) -> Iterator[tuple[dict[str, str], float]]:
        """Yield the clients' gauges."""
        for client in self._clients.values():
            yield from _values(client, client.gauges)

    def sums(self) -> Iterator[tuple[dict[str, str], float]]:
        """Yield the clients' counters."""
        for client in self._clients.values():
            yield from _values(client, client.sums)

    def statistics(self) -> dict[str, int]:
        return {
            "clients_count": len(self._clients),
            "series_count": self._series_count,
            "dropped_count": self.dropped_count,
        }


def _values(client: _Client, table: Mapping[Series, float]) -> Iterator[tuple[dict[str, str], float]]:
    for (metric, attributes), value in table.items():
        labels = {_label(name): text for name, text in attributes}
        yield labels | {"metric": metric, **client.labels}, value


def _characters(series: Series) -> int:
    metric, attributes = series
    return len(metric) + sum(len(name) + len(text) for name, text in attributes)


def _label(name: str) -> str:
    """Return a valid Prometheus label name; two leading underscores are reserved."""
    label = _NO_LABEL.sub("_", name).lstrip("_") or "attribute"
    return f"_{label}" if label[0].isdigit() else label
