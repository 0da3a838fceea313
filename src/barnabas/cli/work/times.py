"""Times as people write them."""

import datetime
import re

from barnabas.cli.failures import wrong_use

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGE = re.compile(r"(\d+)\s*(ms|s|m|h|d)(\s+ago)?")


def parse_time_ms(text: str, now_ms: int) -> int:
    """Milliseconds since the epoch of a date, a date with time (local unless it has a zone), an age, or itself.

    :raises Failure: When it is none of these.
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        return int(text)
    age = _AGE.fullmatch(text)
    if age:
        return max(0, now_ms - int(age[1]) * _UNITS_MS[age[2]])
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        message = f"--since '{text}' is no time"
        raise wrong_use(message, "2026-01-31T09:30, 2026-01-31T09:30:00Z, 1767225600000, or 10m") from None
    return max(0, round(moment.timestamp() * 1000))


def moment(time_ms: int | None) -> str:
    """A time for people, in UTC; nothing for none."""
    if time_ms is None or time_ms < 0:
        return ""
    return datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC).isoformat(timespec="milliseconds")
