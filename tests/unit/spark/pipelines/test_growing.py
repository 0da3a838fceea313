"""State of an incrementing column, and polling of a database, without Spark or a database."""

import datetime
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import pytest

from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.pipelines.sources.jdbc_incrementing import End, Takes, end_from
from pyspark_barnabas.pipelines.sources.jdbc_poller import Taking, interval_s
from support.waiting import until


@pytest.mark.parametrize(
    ("value", "end"),
    [
        (7, End("whole", "7")),
        (Decimal("7.10"), End("decimal", "7.10")),
        (datetime.date(2026, 1, 2), End("date", "2026-01-02")),
        (datetime.datetime(1970, 1, 1, 0, 0, 1, 5, datetime.UTC), End("timestamp", "1000005")),
    ],
)
def test_an_end_value_is_stored_as_lossless_text(value: object, end: End) -> None:
    assert end_from(value, "id") == end


@pytest.mark.parametrize("value", ["text", 1.5, True, b"x"])
def test_column_types_that_cannot_increment_are_rejected(value: object) -> None:
    with pytest.raises(FlowError, match="must be a whole number, decimal, date or timestamp"):
        end_from(value, "id")


@pytest.mark.parametrize(
    ("last", "newest"),
    [
        (End("whole", "9"), End("whole", "10")),
        (End("decimal", "9.5"), End("decimal", "10.25")),
        (End("whole", "9"), End("decimal", "9.01")),
        (End("decimal", "9.9"), End("whole", "10")),
        (End("date", "2026-01-09"), End("date", "2026-01-10")),
        (End("timestamp", "-5"), End("timestamp", "1000005")),
    ],
)
def test_values_are_in_the_order_of_their_kind(last: End, newest: End) -> None:
    assert newest.is_after(last)
    assert not last.is_after(newest)
    assert not newest.is_after(newest)


def test_equal_numbers_of_two_kinds_are_not_after_each_other() -> None:
    assert not End("decimal", "7.00").is_after(End("whole", "7"))
    assert not End("whole", "7").is_after(End("decimal", "7.00"))


def test_kinds_without_a_common_order_may_be_after_each_other() -> None:
    assert End("date", "2026-01-01").is_after(End("timestamp", "1000005"))
    assert End("whole", "1").is_after(End("date", "2026-01-01"))


class Database(NamedTuple):
    label: str


class Source(NamedTuple):
    database: Database
    growing: str


def test_a_value_before_the_last_one_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica lags behind the one that was read before."""
    end = tmp_path / "taken" / "0" / "_end.json"
    end.parent.mkdir(parents=True)
    end.write_text('{"kind": "whole", "text": "100"}')
    source: Any = Source(Database("jdbc orders"), "id")
    session: Any = None
    takes = Takes(session, source, tmp_path)
    monkeypatch.setattr(takes, "_newest", lambda: End("whole", "90"))
    assert not takes.take()
    assert takes.last() == (0, End("whole", "100"))


def test_durations_are_in_seconds() -> None:
    assert [interval_s(text) for text in ("500 milliseconds", "1 second", "2 minutes")] == [0.5, 1.0, 120.0]


def test_a_table_is_polled_until_it_is_stopped_or_fails() -> None:
    polls = Event()
    taking = Taking(polls.set, 0.001)
    assert polls.wait(10)
    taking.stop()
    assert taking.error is None

    def fail() -> None:
        raise FlowError("gone")

    failing = Taking(fail, 0.001)
    until(lambda: failing.is_first_over)
    assert str(failing.error) == "gone"
    failing.stop()


def test_a_single_extract_starts_immediately_and_ends() -> None:
    polls: list[int] = []
    taking = Taking(lambda: polls.append(1), None)
    until(lambda: taking.is_first_over)
    taking.stop()
    assert (polls, taking.error) == ([1], None)


def test_a_running_extract_is_cancelled_when_it_is_stopped() -> None:
    called_off = Event()

    def extract() -> None:
        assert called_off.wait(10)
        raise FlowError("called off")

    taking = Taking(extract, None, called_off.set)
    assert not taking.is_first_over
    taking.stop()
    assert taking.is_first_over
    assert taking.error is None
