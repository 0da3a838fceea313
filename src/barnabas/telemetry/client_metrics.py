"""What clients tell of themselves (KIP-714), kept as it was last told, for /metrics; bounded in number."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from barnabas.telemetry.otlp import Attributes, DataPoint, DataPointKind

#: Series that one client may have, and all of them together; what comes beyond is counted and forgotten.
CLIENT_SERIES_COUNT_MAX = 1000
SERIES_COUNT_MAX = 50_000

#: Attributes of one data point that become labels.
LABELS_COUNT_MAX = 16

_NO_LABEL = re.compile(r"[^a-zA-Z0-9_]")

Series = tuple[str, Attributes]  #: a metric's name and its data point's attributes


@dataclass(slots=True)
class _Client:
    """One client's numbers."""

    labels: Mapping[str, str]
    gauges: dict[Series, float] = field(default_factory=dict)
    sums: dict[Series, float] = field(default_factory=dict)

    @property
    def series_count(self) -> int:
        return len(self.gauges) + len(self.sums)


class ClientMetrics:
    """The last numbers of each client, by client instance id."""

    def __init__(self) -> None:
        self._clients: dict[bytes, _Client] = {}
        self._series_count = 0
        self.dropped_count = 0  #: data points for which there was no room

    def push(self, instance_id: bytes, labels: Mapping[str, str], points: Iterable[DataPoint]) -> None:
        """Take over what a client has pushed; `labels` say who it is."""
        client = self._clients.setdefault(instance_id, _Client(labels))
        client.labels = labels
        for point in points:
            table = client.gauges if point.kind is DataPointKind.GAUGE else client.sums
            series = (point.metric, point.attributes)
            if series not in table:
                if client.series_count >= CLIENT_SERIES_COUNT_MAX or self._series_count >= SERIES_COUNT_MAX:
                    self.dropped_count += 1
                    continue
                self._series_count += 1
            before = table.get(series, 0.0) if point.kind is DataPointKind.DELTA else 0.0
            table[series] = before + point.value

    def remove(self, instance_id: bytes) -> None:
        """Let go of a client that has gone."""
        client = self._clients.pop(instance_id, None)
        if client is not None:
            self._series_count -= client.series_count

    def gauges(self) -> Iterator[tuple[dict[str, str], float]]:
        """What clients say of how they are now."""
        for client in self._clients.values():
            yield from _values(client, client.gauges)

    def sums(self) -> Iterator[tuple[dict[str, str], float]]:
        """What clients have counted."""
        for client in self._clients.values():
            yield from _values(client, client.sums)

    def statistics(self) -> dict[str, int]:
        """How much is kept."""
        return {
            "clients_count": len(self._clients),
            "series_count": self._series_count,
            "dropped_count": self.dropped_count,
        }


def _values(client: _Client, table: Mapping[Series, float]) -> Iterator[tuple[dict[str, str], float]]:
    for (metric, attributes), value in table.items():
        labels = {_label(name): text for name, text in attributes[:LABELS_COUNT_MAX]}
        yield labels | {"metric": metric, **client.labels}, value


def _label(name: str) -> str:
    """A name that Prometheus allows for a label; two underscores in front are its own."""
    label = _NO_LABEL.sub("_", name).lstrip("_") or "attribute"
    return f"_{label}" if label[0].isdigit() else label
