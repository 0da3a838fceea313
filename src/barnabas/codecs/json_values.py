"""Types of JSON values as types of columns, with the functions that read values."""

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas.codecs.errors import ConversionError

_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_QUOTED_CHARACTERS_MAX = 60


class JsonType(NamedTuple):
    """A type of values as a type of columns."""

    type: pa.DataType
    read: Callable[[Any], Any]  #: from a value that is not null to a row's


def misfit(value: Any, expected: str) -> ConversionError:
    """Return the error for a value of another type."""
    text = json_text(value)
    if len(text) > _QUOTED_CHARACTERS_MAX:
        text = f"{text[:_QUOTED_CHARACTERS_MAX]}..."
    return ConversionError(f"is {text}; it must be {expected}")


def json_text(value: Any) -> str:
    """Return a value as JSON; a Decimal keeps all its digits."""
    match value:
        case dict():
            return f"{{{','.join(f'{json_text(name)}:{json_text(inner)}' for name, inner in value.items())}}}"
        case list():
            return f"[{','.join(map(json_text, value))}]"
        case Decimal():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def _read_string(value: Any) -> str:
    if not isinstance(value, str):
        raise misfit(value, "a string")
    return value


def _read_boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise misfit(value, "true or false")
    return value


def _read_integer(value: Any) -> int:
    """Read an integer, which may be written as 1.0 or 1e3, too."""
    if type(value) not in (int, float, Decimal) or not _LONG_MIN <= value <= _LONG_MAX or value != int(value):
        raise misfit(value, "an integer of 64 bits")
    return int(value)


def _read_number(value: Any) -> float:
    if type(value) not in (int, float, Decimal):
        raise misfit(value, "a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise misfit(value, "a number that fits a double")
    return number


def _read_date(value: Any) -> int:
    """Return the days since 1970."""
    try:
        if not isinstance(value, str) or not _DATE.fullmatch(value):
            raise ValueError
        return (date.fromisoformat(value) - _EPOCH.date()).days
    except ValueError:
        raise misfit(value, "a date such as 2026-05-17") from None


def _read_date_time(value: Any) -> int:
    """Return the microseconds since 1970; finer digits are cut off."""
    try:
        text = value.upper() if isinstance(value, str) else ""
        if not _DATE_TIME.fullmatch(text):
            raise ValueError
        return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND
    except ValueError:
        raise misfit(value, "a date and time with offset, such as 2026-05-17T10:30:00Z") from None


STRING = JsonType(pa.string(), _read_string)
BOOLEAN = JsonType(pa.bool_(), _read_boolean)
INTEGER = JsonType(pa.int64(), _read_integer)
NUMBER = JsonType(pa.float64(), _read_number)
DATE = JsonType(pa.date32(), _read_date)
DATE_TIME = JsonType(pa.timestamp("us", "UTC"), _read_date_time)
#: Values of several types, as their JSON.
TEXT = JsonType(pa.string(), json_text)
