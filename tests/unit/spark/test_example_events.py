"""The example's events, without Spark: kinds of events, and the comparison of totals."""

from collections import Counter

import pyarrow as pa
import pytest
from examples.orders.events import decoded, event, numbered
from examples.orders.totals import Totals, Window, differences, expected

COUNT = 20_000


def test_an_event_depends_only_on_its_number() -> None:
    numbers = [0, 7, 19_999]
    [batch] = numbered([pa.record_batch({"id": numbers})], COUNT)
    assert batch["value"].to_pylist() == [event(number, COUNT) for number in numbers]


def test_most_events_are_in_time_and_some_are_late_broken_or_negative() -> None:
    totals = expected(COUNT)
    kinds = Counter(totals.dead)
    assert set(kinds) == {"not JSON", "not UTF-8", "paid", "in_time"}
    assert sum(totals.rows.values()) + sum(kinds.values()) == COUNT + 1
    assert 0.005 < sum(kinds.values()) / COUNT < 0.015
    assert totals.rows["end"] == 1
    assert len(totals.windows) == 96
    assert sum(window.orders for window in totals.windows.values()) == totals.rows["order"]
    assert sum(window.cents for window in totals.windows.values()) == sum(totals.items.values())


@pytest.mark.parametrize("value", [b"{", b"\xff{}", b'{"cents": "dear"}'])
def test_an_invalid_event_is_none(value: bytes) -> None:
    assert decoded(value) is None


def test_differences_are_reported_by_part_and_key() -> None:
    right = Totals({"order": 2}, {}, {"00:00": Window(1, 1, 1)}, {})
    wrong = right._replace(rows={"order": 1}, dead={"paid": 1})
    assert differences(right, right) == []
    assert differences(wrong, right) == [
        "rows order: 1, expected 2",
        "dead paid: 1, expected None",
    ]
