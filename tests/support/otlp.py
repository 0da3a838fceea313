"""Encode OTLP metrics as clients push them; only the protobuf that this needs."""

import struct
from collections.abc import Mapping, Sequence

DELTA, CUMULATIVE = 1, 2


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def number_field(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def double_field(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def int64_field(number: int, value: int) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<q", value)


def fixed64_field(number: int, value: int) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<Q", value)


def attributes(number: int, pairs: Mapping[str, str]) -> bytes:
    return b"".join(
        field(number, field(1, key.encode()) + field(2, field(1, text.encode())))
        for key, text in pairs.items()
    )


def point(value: float | int, pairs: Mapping[str, str] | None = None) -> bytes:
    """Encode a data point with times, as clients do."""
    times = int64_field(2, 1_000) + int64_field(3, 2_000)
    content = int64_field(6, value) if isinstance(value, int) else double_field(4, value)
    return times + content + attributes(7, pairs or {})


def gauge(name: str, *points: bytes) -> bytes:
    return field(1, name.encode()) + field(5, b"".join(field(1, each) for each in points))


def sums(name: str, *points: bytes, temporality: int = DELTA, monotonic: bool = True) -> bytes:
    content = b"".join(field(1, each) for each in points)
    content += number_field(2, temporality) + number_field(3, monotonic)
    return field(1, name.encode()) + field(7, content)


def histogram(
    name: str,
    counts: Sequence[int],
    bounds: Sequence[float],
    total: float,
    pairs: Mapping[str, str] | None = None,
    *,
    temporality: int = DELTA,
) -> bytes:
    packed = field(6, struct.pack(f"<{len(counts)}Q", *counts)) + field(
        7, struct.pack(f"<{len(bounds)}d", *bounds)
    )
    content = fixed64_field(4, sum(counts)) + double_field(5, total) + packed + attributes(9, pairs or {})
    return field(1, name.encode()) + field(9, field(1, content) + number_field(2, temporality))


def metrics_data(metrics: Sequence[bytes], resource: Mapping[str, str] | None = None) -> bytes:
    """Encode a payload of one resource and one scope."""
    scope = field(1, field(1, b"a scope")) + b"".join(field(2, each) for each in metrics)
    return field(1, field(1, attributes(1, resource or {})) + field(2, scope))
