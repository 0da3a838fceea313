"""Parsing and formatting of times in arguments and tables."""

import datetime
import re

from barnabas.cli.support.failures import wrong_use

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d+)\s*(ms|s|m|h|d)")
_AGE = re.compile(rf"{_DURATION.pattern}(\s+ago)?")


def parse_time_ms(text: str, now_ms: int) -> int:
    """Parse a time to ms since the epoch: a date, a date with time, an age such as `10m`, or ms since the epoch.

    A date with time is local unless it has a time zone.

    :raises CommandError: If the text has none of these forms.
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        return int(text)
    age = _AGE.fullmatch(text)
    if age:
        return max(0, now_ms - int(age[1]) * _UNITS_MS[age[2]])
    try:
        parsed = datetime.datetime.fromisoformat(text)
    except ValueError:
        message = f"invalid time '{text}'"
        raise wrong_use(message, "2026-01-31T09:30, 2026-01-31T09:30:00Z, 1767225600000, or 10m") from None
    return max(0, round(parsed.timestamp() * 1000))


def parse_duration_ms(text: str) -> int:
    """Parse a duration such as `12h` to ms.

    :raises CommandError: If it has another form.
    """
    duration = _DURATION.fullmatch(text.strip())
    if duration is None:
        raise wrong_use(f"invalid duration '{text}'", "500ms, 30s, 10m, 12h or 7d")
    return int(duration[1]) * _UNITS_MS[duration[2]]


def format_timestamp(time_ms: int | None) -> str:
    """Format a time in UTC; "" for None and negative times."""
    if time_ms is None or time_ms < 0:
        return ""
    return datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC).isoformat(timespec="milliseconds")
