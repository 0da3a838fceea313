"""Metrics as clients push them: OpenTelemetry's protobuf, as much of it as clients write (KIP-714).

`MetricsData` holds resources, these scopes, these metrics, and these data points. Gauges and sums are read, whatever
else there is is passed over. Bytes from outside: how much is looked at is bounded.
"""

import struct
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

#: Fields that are looked at in one payload; more would hold up the thread that serves everybody (about 0.1 s).
FIELDS_COUNT_MAX = 100_000

#: Of a name, an attribute's name or its value.
TEXT_CHARACTERS_MAX = 256

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_BITS_MAX = 64
_double = struct.Struct("<d").unpack
_int64 = struct.Struct("<q").unpack

Attributes = tuple[tuple[str, str], ...]


class MalformedMetrics(Exception):
    """Bytes that are no metrics."""


class Kind(Enum):
    """What a data point says."""

    GAUGE = "gauge"  #: how it is now
    DELTA = "delta"  #: how much has come since the last push
    CUMULATIVE = "cumulative"  #: how much has come since a start


class DataPoint(NamedTuple):
    """One number of one metric, with the attributes of its resource and its own."""

    metric: str
    kind: Kind
    value: float
    attributes: Attributes


class _Fields:
    """Reads the fields of messages, one inside the other, until the budget of them all is spent."""

    def __init__(self) -> None:
        self._left_count = FIELDS_COUNT_MAX

    def of(self, data: memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
        """(number, wire type, value) of each field of a message."""
        position, end = 0, len(data)
        while position < end:
            self._left_count -= 1
            if self._left_count < 0:
                message = f"more than {FIELDS_COUNT_MAX} fields"
                raise MalformedMetrics(message)
            tag, position = _read_varint(data, position)
            number, wire_type = tag >> 3, tag & 7
            value: int | memoryview
            if wire_type == _VARINT:
                value, position = _read_varint(data, position)
            else:
                size, position = _size(data, wire_type, position)
                if position + size > end:
                    message = f"field {number} ends behind the message that it is in"
                    raise MalformedMetrics(message)
                value, position = data[position : position + size], position + size
            yield number, wire_type, value

    def messages(self, data: memoryview, wanted: int) -> Iterator[memoryview]:
        """The messages in field `wanted`."""
        for number, _, value in self.of(data):
            if number == wanted and isinstance(value, memoryview):
                yield value


def _read_varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < _VARINT_BITS_MAX:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise MalformedMetrics("a number has no end")


def _size(data: memoryview, wire_type: int, position: int) -> tuple[int, int]:
    if wire_type == _BYTES:
        return _read_varint(data, position)
    if wire_type in (_FIXED32, _FIXED64):
        return 4 if wire_type == _FIXED32 else 8, position
    message = f"wire type {wire_type} is unknown"
    raise MalformedMetrics(message)


def read_points(data: bytes) -> Iterator[DataPoint]:
    """Every data point of a gauge or a sum.

    :raises MalformedMetrics: When the bytes cannot be read, or have too many fields; points before that are given.
    """
    fields = _Fields()
    for resource_metrics in fields.messages(memoryview(data), 1):
        attributes: Attributes = ()
        for resource in fields.messages(resource_metrics, 1):
            attributes = _attributes(fields, resource, 1)
        for scope_metrics in fields.messages(resource_metrics, 2):
            for metric in fields.messages(scope_metrics, 2):
                yield from _points(fields, metric, attributes)


def _points(fields: _Fields, metric: memoryview, attributes: Attributes) -> Iterator[DataPoint]:
    name, kind, points = "", Kind.GAUGE, memoryview(b"")
    for number, _, value in fields.of(metric):
        if not isinstance(value, memoryview):
            continue
        if number == 1:
            name = _text(value)
        elif number == 5:
            kind, points = Kind.GAUGE, value
        elif number == 7:
            kind, points = _kind_of_sum(fields, value), value
    for point in fields.messages(points, 1):
        number_of, own = _number(fields, point), _attributes(fields, point, 7)
        if name and number_of is not None:
            yield DataPoint(name, kind, number_of, attributes + own)


def _kind_of_sum(fields: _Fields, data: memoryview) -> Kind:
    temporality, is_monotonic = 0, False
    for number, _, value in fields.of(data):
        if number == 2 and isinstance(value, int):
            temporality = value
        elif number == 3:
            is_monotonic = bool(value)
    if not is_monotonic:
        return Kind.GAUGE
    return Kind.DELTA if temporality == 1 else Kind.CUMULATIVE


def _number(fields: _Fields, point: memoryview) -> float | None:
    for number, wire_type, value in fields.of(point):
        if wire_type == _FIXED64 and isinstance(value, memoryview):
            if number == 4:
                return float(_double(value)[0])
            if number == 6:
                return float(_int64(value)[0])
    return None


def _attributes(fields: _Fields, data: memoryview, wanted: int) -> Attributes:
    found = []
    for pair in fields.messages(data, wanted):
        key = text = ""
        for number, _, value in fields.of(pair):
            if number == 1 and isinstance(value, memoryview):
                key = _text(value)
            elif number == 2 and isinstance(value, memoryview):
                text = _any_value(fields, value)
        if key:
            found.append((key, text))
    return tuple(found)


def _any_value(fields: _Fields, data: memoryview) -> str:
    """Text, truth and numbers as text; arrays and maps are not told."""
    for number, _, value in fields.of(data):
        if isinstance(value, memoryview):
            if number == 1:
                return _text(value)
            if number == 4 and len(value) == 8:
                return str(_double(value)[0])
        elif number == 2:
            return "true" if value else "false"
        elif number == 3:
            return str(value - (1 << 64) if value >> 63 else value)
    return ""


def _text(value: memoryview) -> str:
    return str(value[: 4 * TEXT_CHARACTERS_MAX], "utf-8", "replace")[:TEXT_CHARACTERS_MAX]
