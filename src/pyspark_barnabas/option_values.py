"""Options' values as Spark writes them: whole numbers, yes and no, sizes, durations, JSON."""

import json
import re
from collections.abc import Mapping
from typing import Any

from barnabas.base.ids import TopicPartition

_SIZE = re.compile(r"(\d+)\s*([kmgt]?)i?b?", re.IGNORECASE)
_SIZE_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_DURATION = re.compile(r"(\d+)\s*([a-z]*)", re.IGNORECASE)
_DURATION_UNITS_MS = {
    "": 1,
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
_FLAGS = {"true": True, "false": False}


class OptionError(ValueError):
    """Options that cannot be."""


def option_error(option: str, value: str, expected: str) -> OptionError:
    """The error that names an option, its value, and what would be right."""
    return OptionError(f"option '{option}' is '{value}': {expected}")


def number(option: str, text: str, *, minimum: int | None = None) -> int:
    """A whole number, at least `minimum`.

    :raises OptionError: For anything else.
    """
    expected = "a whole number is expected" + ("" if minimum is None else f", at least {minimum}")
    try:
        value = int(text.strip())
    except ValueError:
        raise option_error(option, text, expected) from None
    if minimum is not None and value < minimum:
        raise option_error(option, text, expected)
    return value


def flag(option: str, text: str) -> bool:
    """True or false.

    :raises OptionError: For anything else.
    """
    value = _FLAGS.get(text.strip().lower())
    if value is None:
        raise option_error(option, text, "true or false is expected")
    return value


def size_bytes(option: str, text: str) -> int:
    """A size such as 1048576, 64k or 128m.

    :raises OptionError: For anything else, and for nothing.
    """
    match = _SIZE.fullmatch(text.strip())
    value = int(match[1]) * _SIZE_UNITS[match[2].lower()] if match else 0
    if value < 1:
        raise option_error(option, text, "a size is expected, such as 128m or 1048576")
    return value


def duration_ms(option: str, text: str) -> int:
    """A duration such as 15m, 30s or 500ms; without a unit it is milliseconds.

    :raises OptionError: For anything else.
    """
    match = _DURATION.fullmatch(text.strip())
    unit_ms = _DURATION_UNITS_MS.get(match[2].lower()) if match else None
    if match is None or unit_ms is None:
        raise option_error(option, text, "a duration is expected, such as 15m, 30s or 500ms")
    return int(match[1]) * unit_ms


def partitions(option: str, text: str) -> frozenset[TopicPartition]:
    """The partitions of `{"topic": [0, 1]}`.

    :raises OptionError: For anything else, and for none.
    """
    expected = 'JSON such as {"topic": [0, 1]} is expected'
    found: set[TopicPartition] = set()
    for topic, indexes in _json_object(option, text, expected).items():
        if not isinstance(indexes, list) or not all(_is_index(each) for each in indexes):
            raise option_error(option, text, f"{expected}; topic '{topic}' has no list of partitions")
        found.update(TopicPartition(topic, index) for index in indexes)
    if not found:
        raise option_error(option, text, f"{expected}, with one partition at least")
    return frozenset(found)


def numbers_by_partition(
    option: str, text: str, *, minimum: int, expected: str = "offsets"
) -> dict[TopicPartition, int]:
    """The numbers of `{"topic": {"0": 23, "1": 42}}`, each at least `minimum`.

    :raises OptionError: For anything else.
    """
    wanted = f'JSON such as {{"topic": {{"0": 23}}}} with {expected} by partition is expected'
    found = {}
    for topic, by_index in _json_object(option, text, wanted).items():
        if not isinstance(by_index, dict):
            raise option_error(option, text, f"{wanted}; topic '{topic}' has no object")
        for index, value in by_index.items():
            if not index.isdecimal() or not _is_int(value) or value < minimum:
                raise option_error(option, text, f"{wanted}; '{index}': {json.dumps(value)} cannot be")
            found[TopicPartition(topic, int(index))] = value
    return found


def nested(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Offsets as the connector writes them in JSON: by topic and by partition, in a settled order."""
    found: dict[str, dict[str, int]] = {}
    for place in sorted(offsets):
        found.setdefault(place.topic, {})[str(place.partition)] = offsets[place]
    return found


def flat(offsets: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """The reverse of `nested`."""
    return {
        TopicPartition(topic, int(index)): offset
        for topic, by_index in offsets.items()
        for index, offset in by_index.items()
    }


def _json_object(option: str, text: str, expected: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        raise option_error(option, text, expected) from None
    if not isinstance(value, dict):
        raise option_error(option, text, expected)
    return value


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
