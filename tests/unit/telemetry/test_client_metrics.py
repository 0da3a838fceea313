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


def test_attributes_that_become_no_labels_are_not_kept() -> None:
    metrics = ClientMetrics()
    for number in range(3):
        attributes = tuple((f"a{at}", "x") for at in range(client_metrics.LABELS_COUNT_MAX))
        points = [DataPoint("m", DataPointKind.DELTA, 1.0, (*attributes, ("last", str(number))))]
        metrics.push(ONE, {}, points)
    assert metrics.statistics()["series_count"] == 1
    [(labels, value)] = metrics.sums()
    assert value == 3
    assert labels.keys() == {"metric", *(name for name, _ in attributes)}


def test_names_and_attributes_are_limited_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_metrics, "CHARACTERS_COUNT_MAX", 100)
    metrics = ClientMetrics()
    many = [DataPoint("m" * 9, DataPointKind.GAUGE, 1.0, (("n" * 10, str(at) * 21),)) for at in range(4)]
    metrics.push(ONE, {}, many)
    metrics.push(TWO, {}, [DataPoint("short", DataPointKind.GAUGE, 1.0, ())])
    assert metrics.statistics() == {"clients_count": 2, "series_count": 3, "dropped_count": 2}
    metrics.remove(ONE)
    metrics.push(TWO, {}, many)
    assert metrics.statistics() == {"clients_count": 1, "series_count": 3, "dropped_count": 4}
