from collections.abc import Iterator
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.telemetry import otlp
from barnabas.telemetry.otlp import DataPoint, DataPointKind, MalformedMetrics, read_points
from support.otlp import (
    CUMULATIVE,
    DELTA,
    field,
    fixed64_field,
    gauge,
    histogram,
    metrics_data,
    number_field,
    point,
    sums,
)


def points_of(data: bytes) -> Iterator[DataPoint]:
    """Return the data points of all slices."""
    return chain.from_iterable(read_points(data))


def test_gauges_and_sums_have_the_attributes_of_resource_and_point() -> None:
    data = metrics_data(
        [
            gauge("lag", point(1.5, {"topic": "t"}), point(7)),
            sums("records", point(3.0)),
            sums("bytes", point(-4), temporality=CUMULATIVE),
            sums("queue", point(2), monotonic=False),
        ],
        {"client_rack": "r1"},
    )
    rack = ("client_rack", "r1")
    assert list(points_of(data)) == [
        DataPoint("lag", DataPointKind.GAUGE, 1.5, (rack, ("topic", "t"))),
        DataPoint("lag", DataPointKind.GAUGE, 7.0, (rack,)),
        DataPoint("records", DataPointKind.DELTA, 3.0, (rack,)),
        DataPoint("bytes", DataPointKind.CUMULATIVE, -4.0, (rack,)),
        DataPoint("queue", DataPointKind.GAUGE, 2.0, (rack,)),
    ]


def test_attributes_of_every_plain_type_become_text() -> None:
    values = {
        "truth": number_field(2, 1),
        "number": number_field(3, (1 << 64) - 5),
        "list": field(5, b""),
    }
    pairs = b"".join(field(7, field(1, key.encode()) + field(2, value)) for key, value in values.items())
    [found] = points_of(metrics_data([gauge("m", point(1) + pairs)]))
    assert found.attributes == (("truth", "true"), ("number", "-5"), ("list", ""))


@pytest.mark.parametrize(
    ("temporality", "kind"), [(DELTA, DataPointKind.DELTA), (CUMULATIVE, DataPointKind.CUMULATIVE)]
)
def test_a_histogram_becomes_its_count_its_sum_and_cumulative_buckets(
    temporality: int, kind: DataPointKind
) -> None:
    data = metrics_data([histogram("h", [2, 0, 3], [0.5, 10.0], 31.5, {"a": "b"}, temporality=temporality)])
    found = list(points_of(data))
    assert {each.kind for each in found} == {kind}
    assert [(each.metric, each.value) for each in found[:2]] == [("h.count", 5.0), ("h.sum", 31.5)]
    assert [(each.metric, each.value, each.attributes) for each in found[2:]] == [
        ("h.bucket", 2.0, (("a", "b"), ("le", "0.5"))),
        ("h.bucket", 2.0, (("a", "b"), ("le", "10.0"))),
        ("h.bucket", 5.0, (("a", "b"), ("le", "+Inf"))),
    ]


def test_a_histogram_without_sum_and_buckets_has_a_count() -> None:
    data = metrics_data([field(1, b"h") + field(9, field(1, fixed64_field(4, 7)))])
    assert [(each.metric, each.value) for each in points_of(data)] == [("h.count", 7.0)]


def test_unknown_fields_are_skipped() -> None:
    summary = field(1, b"s") + field(11, field(1, b""))
    unknown = field(99, b"x") + number_field(98, 7)
    data = unknown + metrics_data([summary, gauge("m", point(1)) + unknown])
    assert [each.metric for each in points_of(data)] == ["m"]


def test_long_texts_are_truncated() -> None:
    [found] = points_of(metrics_data([gauge("m" * 1000, point(1, {"a": "é" * 1000}))]))
    assert len(found.metric) == len(found.attributes[0][1]) == 256


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a\x05abc",  # ends after the message
        b"\x0a",  # no size
        b"\xff" * 11,  # an unterminated number
        b"\x0b",  # a deprecated wire type
        field(1, b"\x12\xff"),
    ],
)
def test_invalid_bytes_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMetrics):
        list(points_of(data))


def test_a_payload_of_endless_fields_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "FIELDS_COUNT_MAX", 100)
    with pytest.raises(MalformedMetrics, match="more than 100 fields"):
        list(points_of(field(1, b"\x08\x01" * 200)))


@pytest.mark.parametrize(
    "data",
    [
        metrics_data([gauge("m", point(1, {"a": "b"} | {f"a{number}": "b" for number in range(50)}))]),
        metrics_data([gauge("m", point(1))], {f"a{number}": "b" for number in range(50)}),
        metrics_data([field(1, b"h") + number_field(2, 1) * 150]),
    ],
)
def test_a_single_slice_is_limited(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(otlp, "PIECE_FIELDS_COUNT_MAX", 100)
    with pytest.raises(MalformedMetrics, match="more than 100 fields in one resource, metric or data point"):
        list(points_of(data))


def test_many_small_messages_are_read_in_many_slices() -> None:
    data = metrics_data([gauge(f"m{number}", point(1)) for number in range(1_000)] + [field(99, b"")] * 500)
    pieces = list(read_points(data))
    assert len(list(chain.from_iterable(pieces))) == 1_000
    assert max(map(len, pieces)) == 1
    assert len(pieces) > 2_500


@given(st.binary(max_size=200), st.integers(0, 300))
def test_any_bytes_are_decoded_or_malformed(noise: bytes, at: int) -> None:
    sound = metrics_data([gauge("m", point(1.0, {"a": "b"})), sums("s", point(2))])
    for data in (noise, sound[:at] + noise + sound[at:]):
        try:
            for each in points_of(data):
                assert each.metric
        except MalformedMetrics:
            pass
