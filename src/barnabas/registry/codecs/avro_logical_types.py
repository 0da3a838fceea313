"""Values whose logical types differ in a scale or a unit, which schema resolution of Avro does not look at."""

from typing import Any

from barnabas.registry.avro.model import AvroType
from barnabas.registry.codecs.errors import MalformedValue

#: What a number counts, and how many nanoseconds a unit has.
_UNITS = {
    f"{prefix}{unit}": (family, nanos)
    for prefix, family in (("time-", "time"), ("timestamp-", "timestamp"), ("local-timestamp-", "timestamp"))
    for unit, nanos in (("millis", 1_000_000), ("micros", 1_000), ("nanos", 1))
}
_INTEGERS = ("int", "long")
_PRECISION_MAX = 1_000
_BINARY = ("bytes", "fixed")


def same_meaning(reader: AvroType, writer: AvroType, value: Any) -> Any:
    """Return a value in Avro's JSON encoding with the scale or unit of the reader's type.

    :raises MalformedValue: If the reader's type cannot have it.
    """
    written, wanted = writer.properties.get("logicalType"), reader.properties.get("logicalType")
    if written == wanted == "decimal" and reader.kind in _BINARY:
        return _decimal(reader, writer, value)
    if written in _UNITS and wanted in _UNITS and reader.kind in _INTEGERS:
        (written_family, written_nanos), (family, nanos) = _UNITS[written], _UNITS[wanted]
        if written_family != family:
            raise MalformedValue(f"{written} cannot be read as {wanted}")
        return value * written_nanos // nanos
    return value


def _decimal(reader: AvroType, writer: AvroType, value: str) -> str:
    if _parameters(reader) == _parameters(writer):
        return value
    (precision, scale), (written_precision, written_scale) = _checked(reader), _checked(writer)
    unscaled = int.from_bytes(value.encode("latin-1"), "big", signed=True)
    text = f"{unscaled}e-{written_scale}, a decimal({written_precision},{written_scale}),"
    number, rest = divmod(unscaled * 10**scale, 10**written_scale)
    if rest or abs(number) >= 10**precision:
        raise MalformedValue(f"{text} cannot be read as a decimal({precision},{scale})")
    size = reader.size if reader.kind == "fixed" else (number + (number < 0)).bit_length() // 8 + 1
    try:
        data: bytes = number.to_bytes(size, "big", signed=True)
    except OverflowError:
        raise MalformedValue(f"{text} does not fit in the {size} bytes of {reader.full_name}") from None
    return data.decode("latin-1")


def _parameters(kind: AvroType) -> tuple[Any, Any]:
    return kind.properties.get("precision"), kind.properties.get("scale", 0)


def _checked(kind: AvroType) -> tuple[int, int]:
    precision, scale = _parameters(kind)
    if isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision <= _PRECISION_MAX:
        return precision, scale
    raise MalformedValue(f"there is no decimal({precision},{scale})")
