"""Parses times that people type into pages, which show UTC."""

import re
from datetime import UTC, datetime

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGE = re.compile(r"(\d{1,12})\s*(ms|s|min|m|h|d)(\s+ago)?")
EXAMPLES = "2026-01-31 09:30 (UTC), 10m, 2h, or milliseconds since 1970"


def time_ms(text: str, now_ms: int) -> int:
    """Milliseconds since the epoch of a date, a date with time, an age, or a number of milliseconds.

    :raises ValueError: When it is none of these, with a message for people.
    """
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) < 16:
        return int(text)
    age = _AGE.fullmatch(text)
    if age:
        return max(0, now_ms - int(age[1]) * _UNITS_MS[age[2]])
    try:
        moment = datetime.fromisoformat(text)
        return max(0, round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError):
        message = f"'{text[:40]}' is not a time. Examples: {EXAMPLES}."
        raise ValueError(message) from None
