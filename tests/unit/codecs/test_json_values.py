"""Values of JSON as values of columns."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.codecs.errors import ConversionError
from barnabas.codecs.json_values import DATE, DATE_TIME, INTEGER, NUMBER, JsonType

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (DATE, "1970-01-02", 1),
        (DATE, "0001-01-01", -719162),
        (DATE_TIME, "1970-01-01T00:00:00Z", 0),
        (DATE_TIME, "1970-01-01T01:00:00.5+01:00", 500_000),
        (DATE_TIME, "1970-01-01t00:00:00.0000019z", 1),
        (DATE_TIME, "1969-12-31T23:59:59.999999-00:00", -1),
        (DATE_TIME, "9999-12-31T23:59:59-23:59", 253402387139000000),
        (INTEGER, 5.0, 5),
        (INTEGER, Decimal("1E+3"), 1000),
        (INTEGER, -(2**63), -(2**63)),
        (NUMBER, 2**64, 2.0**64),
        (NUMBER, Decimal("1.5"), 1.5),
    ],
)
def test_values_are_read(kind: JsonType, value: Any, expected: Any) -> None:
    found = kind.read(value)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (DATE, "19700102"),
        (DATE, "1970-02-30"),
        (DATE, "1970-01-02T00:00:00Z"),
        (DATE, "\u0661970-01-02"),
        (DATE, 5),
        (DATE_TIME, "1970-01-01T00:00:00"),
        (DATE_TIME, "1970-01-01"),
        (DATE_TIME, "1970-01-01T24:00:01Z"),
        (DATE_TIME, "1970-01-01T00:00:00+25:00"),
        (DATE_TIME, 0),
        (INTEGER, float("inf")),
        (INTEGER, Decimal("1E+999999999")),
        (INTEGER, Decimal("0.1")),
        (NUMBER, 10**400),
        (NUMBER, float("inf")),
        (NUMBER, Decimal("1E+400")),
        (NUMBER, False),
    ],
)
def test_other_values_are_conversion_errors(kind: JsonType, value: Any) -> None:
    with pytest.raises(ConversionError, match="; it must be a"):
        kind.read(value)


@given(st.datetimes(timezones=st.timezones() | st.just(UTC)))
def test_an_instant_is_kept_with_any_offset(instant: datetime) -> None:
    offset = instant.utcoffset() or timedelta()
    written = instant.replace(tzinfo=UTC) - offset if offset % timedelta(minutes=1) else instant
    read = EPOCH + timedelta(microseconds=DATE_TIME.read(written.isoformat()))
    assert read == written.astimezone(UTC)  # an hour that the clock repeats is equal to none of another zone


@given(st.dates())
def test_a_date_is_kept(day: date) -> None:
    assert EPOCH.date() + timedelta(days=DATE.read(day.isoformat())) == day
