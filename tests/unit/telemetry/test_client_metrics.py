import pytest

from barnabas.telemetry import client_metrics
from barnabas.telemetry.client_metrics import ClientMetrics
from barnabas.telemetry.otlp import DataPoint, DataPointKind

ONE, TWO = b"1" * 16, b"2" * 16


def test_gauges_have_their_last_value_and_sums_add_up() -> None:
    metrics = ClientMetrics()
    for value in (1.0, 4.0):
        points = [
            DataPoint("lag", DataPointKind.GAUGE, value, (("topic", "t"),)),
            DataPoint("records", DataPointKind.DELTA, value, ()),
            DataPoint("bytes", DataPointKind.CUMULATIVE, value, ()),
        ]
        metrics.push(ONE, {"client_id": "c"}, points)
    assert list(metrics.gauges()) == [({"topic": "t", "metric": "lag", "client_id": "c"}, 4.0)]
    assert list(metrics.sums()) == [
        ({"metric": "records", "client_id": "c"}, 5.0),
        ({"metric": "bytes", "client_id": "c"}, 4.0),
    ]


def test_names_become_labels_that_cannot_hide_the_client() -> None:
    metrics = ClientMetrics()
    attributes = (("node.id", "1"), ("__x", "2"), ("1st", "3"), ("client_id", "liar"), ("…", "4"))
    metrics.push(ONE, {"client_id": "c"}, [DataPoint("m", DataPointKind.GAUGE, 1.0, attributes)])
    [(labels, _)] = metrics.gauges()
    assert labels == {
        "node_id": "1",
        "x": "2",
        "_1st": "3",
        "client_id": "c",
        "metric": "m",
        "attribute": "4",
    }


def test_removed_clients_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_metrics, "CLIENT_SERIES_COUNT_MAX", 3)
    monkeypatch.setattr(client_metrics, "SERIES_COUNT_MAX", 5)
    metrics = ClientMetrics()
    many = [DataPoint(f"m{number}", DataPointKind.GAUGE, 1.0, ()) for number in range(4)]
    metrics.push(ONE, {}, many)
    metrics.push(TWO, {}, many)
    assert metrics.statistics() == {"clients_count": 2, "series_count": 5, "dropped_count": 3}
    metrics.remove(ONE)
    metrics.push(TWO, {}, many)
    assert metrics.statistics() == {"clients_count": 1, "series_count": 3, "dropped_count": 4}
    metrics.remove(ONE)
