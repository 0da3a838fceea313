"""The expected totals, counted in plain Python, and their comparison with the results."""

from collections import Counter
from typing import NamedTuple

from examples.orders.events import START_MS, decoded, event

IN_TIME_MS = 30 * 60_000
WINDOW_MS = 15 * 60_000


class Window(NamedTuple):
    """Totals of a quarter of an hour."""

    orders: int
    clicks: int
    cents: int


class Totals(NamedTuple):
    """The totals of the report."""

    rows: dict[str, int]  #: of the table, by kind
    dead: dict[str, int]  #: dead letters, by reason
    windows: dict[str, Window]  #: by HH:mm
    items: dict[str, int]  #: cents, by item


def expected(count: int) -> Totals:
    """Count the events one by one."""
    rows: Counter[str] = Counter()
    dead: Counter[str] = Counter()
    items: Counter[str] = Counter()
    orders: Counter[int] = Counter()
    clicks: Counter[int] = Counter()
    cents: Counter[int] = Counter()
    for number in range(count + 1):
        value = event(number, count)
        found = decoded(value)
        if found is None:
            dead["not UTF-8" if value.startswith(b"\xff") else "not JSON"] += 1
            continue
        if found["cents"] < 0 or found["sent_ms"] - found["at_ms"] > IN_TIME_MS:
            dead["paid" if found["cents"] < 0 else "in_time"] += 1
            continue
        rows[found["kind"]] += 1
        items[found["item"]] += found["cents"]
        window = (found["at_ms"] - START_MS) // WINDOW_MS
        if found["kind"] != "end":
            orders[window] += found["kind"] == "order"
            clicks[window] += found["kind"] == "click"
            cents[window] += found["cents"]
    windows = {
        _label(each): Window(orders[each], clicks[each], cents[each]) for each in sorted(orders | clicks)
    }
    return Totals(dict(rows), dict(dead), windows, +items)


def differences(found: Totals, wanted: Totals) -> list[str]:
    """Return a line for each difference."""
    return [
        f"{part} {key}: {actual.get(key)}, expected {right.get(key)}"
        for part, actual, right in zip(Totals._fields, found, wanted, strict=True)
        for key in sorted({*actual, *right})
        if actual.get(key) != right.get(key)
    ]


def _label(window: int) -> str:
    minutes = window * 15
    return f"{minutes // 60:02}:{minutes % 60:02}"
