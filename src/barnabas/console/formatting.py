"""Formats numbers and times for pages."""

import html
import re
from datetime import UTC, datetime
from enum import IntEnum

from barnabas.base import plurals

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP = 1024
#: The markup in Apache Kafka's config documentation; other angle brackets, as in `<broker>`, are text.
_MARKUP = re.compile(r"</?(?:(?P<block>br|li|ol|p|pre|ul)|a|b|code|em|i|strong)\b[^<>]*>")
_SPANS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


def word(member: IntEnum) -> str:
    """A word of the protocol as displayed: `transactional-id`."""
    return member.name.lower().replace("_", "-")


def size(count_bytes: int | float | None) -> str:
    """Bytes in a unit that gives few digits: `1.5 GiB`."""
    if count_bytes is None or count_bytes < 0:
        return "–"
    value = float(count_bytes)
    for unit in _UNITS:
        if value < _STEP or unit == _UNITS[-1]:
            break
        value /= _STEP
    return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"


def count(number: int | float | None) -> str:
    """A number with narrow spaces between thousands."""
    return "–" if number is None else f"{round(number):,}".replace(",", "\u202f")


def percent(part: float, whole: float) -> str:
    """A share without the percent sign; 0 and 100 are exact, never rounded."""
    if part == whole:
        return "100"
    share = 100 * part / whole
    return "less than 0.1" if 0 < share < 0.1 else f"{min(share, 99.9):.1f}" if share else "0"


def rate(number: float | None) -> str:
    """A number per second."""
    if number is None:
        return "–"
    return count(number) if number >= 100 or number == round(number) else f"{number:.1f}"


def moment(wall_ms: int | None) -> str:
    """A time in UTC, to the millisecond; a dash for a missing or invalid one."""
    if wall_ms is None or wall_ms < 0:
        return "–"
    try:
        at = datetime.fromtimestamp(wall_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(wall_ms)
    return f"{at:%Y-%m-%d %H:%M:%S}.{wall_ms % 1000:03d}"


def duration(milliseconds: int | float | None) -> str:
    """A duration in its two largest units: `2 d 4 h`."""
    if milliseconds is None or milliseconds < 0:
        return "–"
    rest = round(milliseconds)
    if rest < 1_000:
        return f"{rest} ms"
    parts: list[str] = []
    for unit, length_ms in _SPANS:
        number, rest = divmod(rest, length_ms)
        if number or parts:
            parts.append(f"{number} {unit}")
    return " ".join(part for part in parts[:2] if not part.startswith("0 "))


def plural(number: int, one: str, many: str = "") -> str:
    """`1 topic`, `2 topics`."""
    return plurals.plural(number, one, many, count(number))


def prose(text: str | None) -> str:
    """A config's documentation without Apache Kafka's markup."""
    plain = _MARKUP.sub(lambda found: " " if found["block"] else "", text or "")
    return " ".join(html.unescape(plain).split())
