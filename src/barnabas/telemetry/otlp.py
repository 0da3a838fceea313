"""OpenTelemetry metrics in protobuf, as far as clients push them (KIP-714).

`MetricsData` contains resources, these scopes, these metrics, and these data points. Gauges, sums and histograms are
read, everything else is skipped. The bytes are untrusted, so the number of fields is limited.
"""

import struct
from collections.abc import Iterator, Sequence
from enum import Enum
from math import isinf
from typing import NamedTuple, NoReturn

#: Fields read in one payload, which takes about 0.1 s.
FIELDS_COUNT_MAX = 100_000

#: Fields of one resource, metric or data point with everything in it, which is read without a pause.
PIECE_FIELDS_COUNT_MAX = 2_000

#: Of a name, an attribute's name or its value.
TEXT_CHARACTERS_MAX = 256

#: Of one data point of a histogram.
BUCKETS_COUNT_MAX = 200

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_BITS_MAX = 64
_SHAPES = _GAUGE, _SUM, _HISTOGRAM = 5, 7, 9  #: field of a metric that holds its data points
_DELTA = 1  #: an aggregation temporality
_double = struct.Struct("<d").unpack
_int64 = struct.Struct("<q").unpack
_uint64 = struct.Struct("<Q").unpack
_NUMBER_BYTES = 8
_EMPTY = memoryview(b"")

Attributes = tuple[tuple[str, str], ...]
_Number = tuple[str, float, Attributes]  #: suffix of the metric's name, value, attributes


class MalformedMetrics(Exception):
    """The bytes are not metrics."""


class DataPointKind(Enum):
    """The meaning of a data point's value."""

    GAUGE = "gauge"  #: a current value
    DELTA = "delta"  #: an increase since the last push
    CUMULATIVE = "cumulative"  #: an increase since a start


class DataPoint(NamedTuple):
    """One number of one metric, with the attributes of its resource and its own."""

    metric: str
    kind: DataPointKind
    value: float
    attributes: Attributes


class _ProtobufReader:
    """Reads the fields of nested messages until their common budget is spent."""

    def __init__(self) -> None:
        self._left_count = FIELDS_COUNT_MAX
        self._piece_end_count = 0  #: a piece ends when the budget falls to this

    def begin_piece(self) -> None:
        """Begin a piece that is read without a pause."""
        self._piece_end_count = self._left_count - PIECE_FIELDS_COUNT_MAX

    def end_piece(self) -> None:
        """End the piece; lists of any length may follow."""
        self._piece_end_count = 0

    def of(self, data: memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
        """Yield (number, wire type, value) of each field of a message."""
        position, end = 0, len(data)
        while position < end:
            self._left_count -= 1
            if self._left_count < max(self._piece_end_count, 0):
                self._refuse()
            tag, position = _read_varint(data, position)
            number, wire_type = tag >> 3, tag & 7
            value: int | memoryview
            if wire_type == _VARINT:
                value, position = _read_varint(data, position)
            else:
                size, position = _size(data, wire_type, position)
                if position + size > end:
                    message = f"field {number} extends beyond the end of its message"
                    raise MalformedMetrics(message)
                value, position = data[position : position + size], position + size
            yield number, wire_type, value

    def _refuse(self) -> NoReturn:
        if self._left_count < 0:
            message = f"more than {FIELDS_COUNT_MAX} fields"
        else:
            message = f"more than {PIECE_FIELDS_COUNT_MAX} fields in one resource, metric or data point"
        raise MalformedMetrics(message)

    def elements(self, data: memoryview, wanted: int) -> Iterator[memoryview]:
        """Yield the messages in field `wanted`, and an empty one for each other field, so that the caller can pause."""
        for number, _, value in self.of(data):
            yield value if number == wanted and isinstance(value, memoryview) else _EMPTY

    def messages(self, data: memoryview, wanted: int) -> Iterator[memoryview]:
        """Yield the messages in field `wanted`."""
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
    raise MalformedMetrics("a varint is truncated")


def _size(data: memoryview, wire_type: int, position: int) -> tuple[int, int]:
    if wire_type == _BYTES:
        return _read_varint(data, position)
    if wire_type in (_FIXED32, _FIXED64):
        return 4 if wire_type == _FIXED32 else 8, position
    message = f"wire type {wire_type} is unknown"
    raise MalformedMetrics(message)


def read_points(data: bytes) -> Iterator[Sequence[DataPoint]]:
    """Yield the data points of gauges, sums and histograms, in lists that take less than 5 ms, many of them empty.

    A histogram has several: `NAME.count`, `NAME.sum`, and for each bound `NAME.bucket`, the number of values
    up to the bound, which is its attribute `le`.

    :raises MalformedMetrics: When the bytes cannot be read or have too many fields; earlier points are yielded before.
    """
    fields = _ProtobufReader()
    for resource_metrics in fields.elements(memoryview(data), 1):
        yield ()
        attributes: Attributes = ()
        for resource in fields.elements(resource_metrics, 1):
            fields.begin_piece()
            attributes = _attributes(fields, resource, 1) or attributes
            fields.end_piece()
            yield ()
        for scope_metrics in fields.elements(resource_metrics, 2):
            yield ()
            for metric in fields.elements(scope_metrics, 2):
                yield from _points(fields, metric, attributes)


def _points(
    fields: _ProtobufReader, metric: memoryview, attributes: Attributes
) -> Iterator[Sequence[DataPoint]]:
    name, shape, data = "", _GAUGE, _EMPTY
    fields.begin_piece()
    for number, _, value in fields.of(metric):
        if not isinstance(value, memoryview):
            continue
        if number == 1:
            name = _text(value)
        elif number in _SHAPES:
            shape, data = number, value
    fields.end_piece()
    yield ()
    if not name:
        return
    points, temporality, is_monotonic = list[memoryview](), 0, False
    for number, _, value in fields.of(data):
        if isinstance(value, memoryview):
            if number == 1:
                points.append(value)
        elif number == 2:
            temporality = value
        elif number == 3:
            is_monotonic = is_monotonic or value != 0
        yield ()
    kind = _kind(shape, temporality, is_monotonic=is_monotonic)
    read = _histogram_point if shape == _HISTOGRAM else _number_point
    for point in points:
        fields.begin_piece()
        yield [
            DataPoint(name + suffix, kind, value_of, attributes + own)
            for suffix, value_of, own in read(fields, point)
        ]
        fields.end_piece()


def _kind(shape: int, temporality: int, *, is_monotonic: bool) -> DataPointKind:
    if shape == _GAUGE or (shape == _SUM and not is_monotonic):
        return DataPointKind.GAUGE
    return DataPointKind.DELTA if temporality == _DELTA else DataPointKind.CUMULATIVE


def _number_point(fields: _ProtobufReader, point: memoryview) -> Iterator[_Number]:
    number = _number(fields, point)
    if number is not None:
        yield "", number, _attributes(fields, point, 7)


def _histogram_point(fields: _ProtobufReader, point: memoryview) -> Iterator[_Number]:
    count, total, counts, bounds = 0, None, memoryview(b""), memoryview(b"")
    for number, _, value in fields.of(point):
        if not isinstance(value, memoryview):
            continue
        if number == 4 and len(value) == _NUMBER_BYTES:
            count = _uint64(value)[0]
        elif number == 5 and len(value) == _NUMBER_BYTES:
            total = float(_double(value)[0])
        elif number == 6:
            counts = value
        elif number == 7:
            bounds = value
    own = _attributes(fields, point, 9)
    yield ".count", float(count), own
    if total is not None:
        yield ".sum", total, own
    below_count = 0
    for bucket_count, bound in zip(_packed(counts, "Q"), (*_packed(bounds, "d"), float("inf")), strict=False):
        below_count += int(bucket_count)
        yield ".bucket", float(below_count), (*own, ("le", "+Inf" if isinf(bound) else str(bound)))


def _packed(data: memoryview, kind: str) -> tuple[float, ...]:
    """Yield packed eight-byte numbers."""
    count = min(len(data) // _NUMBER_BYTES, BUCKETS_COUNT_MAX)
    return struct.unpack(f"<{count}{kind}", data[: count * _NUMBER_BYTES])


def _number(fields: _ProtobufReader, point: memoryview) -> float | None:
    for number, wire_type, value in fields.of(point):
        if wire_type == _FIXED64 and isinstance(value, memoryview):
            if number == 4:
                return float(_double(value)[0])
            if number == 6:
                return float(_int64(value)[0])
    return None


def _attributes(fields: _ProtobufReader, data: memoryview, wanted: int) -> Attributes:
    attributes = []
    for pair in fields.messages(data, wanted):
        key = text = ""
        for number, _, value in fields.of(pair):
            if number == 1 and isinstance(value, memoryview):
                key = _text(value)
            elif number == 2 and isinstance(value, memoryview):
                text = _any_value(fields, value)
        if key:
            attributes.append((key, text))
    return tuple(attributes)


def _any_value(fields: _ProtobufReader, data: memoryview) -> str:
    """Return text, booleans and numbers as text; arrays and maps are skipped."""
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
