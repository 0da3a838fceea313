"""Parse option values as Spark writes them: integers, booleans, sizes, durations, JSON."""

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
    """An option has an invalid value, or options contradict each other."""


def option_error(option: str, value: str, expected: str) -> OptionError:
    """Return an error that names the option, its value, and what is expected."""
    return OptionError(f"option '{option}' is '{value}': {expected}")


def number(option: str, text: str, *, minimum: int | None = None) -> int:
    """Parse an integer that is at least `minimum`.

    :raises OptionError: The value is not valid.
    """
    expected = "an integer is expected" + ("" if minimum is None else f", at least {minimum}")
    try:
        value = int(text.strip())
    except ValueError:
        raise option_error(option, text, expected) from None
    if minimum is not None and value < minimum:
        raise option_error(option, text, expected)
    return value


def flag(option: str, text: str) -> bool:
    """Parse `true` or `false`.

    :raises OptionError: The value is not valid.
    """
    value = _FLAGS.get(text.strip().lower())
    if value is None:
        raise option_error(option, text, "true or false is expected")
    return value


def size_bytes(option: str, text: str) -> int:
    """Parse a size such as 1048576, 64k or 128m.

    :raises OptionError: The value is not valid or 0.
    """
    match = _SIZE.fullmatch(text.strip())
    value = int(match[1]) * _SIZE_UNITS[match[2].lower()] if match else 0
    if value < 1:
        raise option_error(option, text, "a size is expected, such as 128m or 1048576")
    return value


def duration_ms(option: str, text: str) -> int:
    """Parse a duration such as 15m, 30s or 500ms; without a unit it is in milliseconds.

    :raises OptionError: The value is not valid.
    """
    match = _DURATION.fullmatch(text.strip())
    unit_ms = _DURATION_UNITS_MS.get(match[2].lower()) if match else None
    if match is None or unit_ms is None:
        raise option_error(option, text, "a duration is expected, such as 15m, 30s or 500ms")
    return int(match[1]) * unit_ms


def partitions(option: str, text: str) -> frozenset[TopicPartition]:
    """Parse the partitions of `{"topic": [0, 1]}`.

    :raises OptionError: The value is not valid or names no partition.
    """
    expected = 'JSON such as {"topic": [0, 1]} is expected'
    parsed: set[TopicPartition] = set()
    for topic, indexes in _json_object(option, text, expected).items():
        if not isinstance(indexes, list) or not all(_is_index(index) for index in indexes):
            raise option_error(option, text, f"{expected}; topic '{topic}' has no list of partitions")
        parsed.update(TopicPartition(topic, index) for index in indexes)
    if not parsed:
        raise option_error(option, text, f"{expected}, with at least one partition")
    return frozenset(parsed)


def numbers_by_partition(
    option: str, text: str, *, minimum: int, expected: str = "offsets"
) -> dict[TopicPartition, int]:
    """Parse the numbers of `{"topic": {"0": 23, "1": 42}}`, each at least `minimum`.

    :raises OptionError: The value is not valid.
    """
    expected_json = f'JSON such as {{"topic": {{"0": 23}}}} with {expected} by partition is expected'
    numbers = {}
    for topic, by_index in _json_object(option, text, expected_json).items():
        if not isinstance(by_index, dict):
            raise option_error(option, text, f"{expected_json}; topic '{topic}' has no object")
        for index, value in by_index.items():
            if not index.isdecimal() or not _is_int(value) or value < minimum:
                raise option_error(
                    option, text, f"{expected_json}; '{index}': {json.dumps(value)} is not valid"
                )
            numbers[TopicPartition(topic, int(index))] = value
    return numbers


def nested(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Return offsets as the connector writes them in JSON: by topic and by partition, sorted."""
    by_topic: dict[str, dict[str, int]] = {}
    for tp in sorted(offsets):
        by_topic.setdefault(tp.topic, {})[str(tp.partition)] = offsets[tp]
    return by_topic


def flat(offsets: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """Return the offsets of `nested` JSON by partition."""
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
