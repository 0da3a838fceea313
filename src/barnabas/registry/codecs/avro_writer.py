"""Writes Avro's JSON encoding in Avro's binary encoding, and checks it.

A value of a union may do without the name of its branch if it fits only one.
"""

import struct
from collections.abc import Iterable
from typing import Any

from barnabas.registry.avro.model import NO_DEFAULT, AvroField, AvroType
from barnabas.registry.codecs.errors import MalformedValue

_LIMITS = {"int": 2**31, "long": 2**63}


def write_avro(schema: AvroType, value: Any) -> bytes:
    """Return a datum.

    :raises MalformedValue: If the value is not one of the schema; with the path to what is wrong.
    """
    out = bytearray()
    try:
        _write(out, schema, value)
    except RecursionError:
        raise MalformedValue("it is nested too deeply") from None
    return bytes(out)


def _write(out: bytearray, schema: AvroType, value: Any, *, is_default: bool = False) -> None:
    """:param is_default: Whether the value is that of a default, in which values of unions have no names."""
    match schema.kind:
        case "null":
            _check(value is None, schema, value)
        case "boolean":
            _check(isinstance(value, bool), schema, value)
            out.append(value)
        case "int" | "long":
            limit = _LIMITS[schema.kind]
            _check(_is_integer(value) and -limit <= value < limit, schema, value)
            _write_long(out, value)
        case "float" | "double":
            out += _float_bytes(schema, value)
        case "string":
            _check(isinstance(value, str), schema, value)
            _write_text(out, value)
        case "bytes" | "fixed":
            data = _latin_bytes(schema, value)
            if schema.kind == "fixed":
                _check(len(data) == schema.size, schema, value)
                out += data
            else:
                _write_bytes(out, data)
        case "enum":
            _check(value in schema.symbols, schema, value)
            _write_long(out, schema.symbols.index(value))
        case "union":
            _write_union(out, schema, value, is_default=is_default)
        case "array" | "map":
            _write_items(out, schema, value, is_default=is_default)
        case _:
            _write_record(out, schema, value, is_default=is_default)


def _write_union(out: bytearray, schema: AvroType, value: Any, *, is_default: bool) -> None:
    if isinstance(value, dict) and len(value) == 1 and not is_default:
        ((name, inner),) = value.items()
        for index, branch in enumerate(schema.branches):
            if name in (branch.full_name, branch.name) and branch.kind != "null":
                _write_long(out, index)
                _within(name, out, branch, inner)
                return
    fitting = []
    for index, branch in enumerate(schema.branches):
        part = bytearray()
        _write_long(part, index)
        try:
            _write(part, branch, value, is_default=is_default)
        except MalformedValue:
            continue
        fitting.append(part)
        if is_default:
            break
    if len(fitting) != 1:
        names = ", ".join(branch.full_name for branch in schema.branches)
        problem = "fits several branches" if fitting else "fits no branch"
        hint = f'; write it as {{"{schema.branches[-1].full_name}": ...}}' if fitting else ""
        raise MalformedValue(f"{_shown(value)} {problem} of {names}{hint}")
    out += fitting[0]


def _write_items(out: bytearray, schema: AvroType, value: Any, *, is_default: bool) -> None:
    assert schema.items is not None
    is_array = schema.kind == "array"
    _check(isinstance(value, list if is_array else dict), schema, value)
    if value:
        _write_long(out, len(value))
    pairs: Iterable[tuple[Any, Any]] = enumerate(value) if is_array else value.items()
    for key, item in pairs:
        if not is_array:
            _write_text(out, key)
        _within(f"[{key}]", out, schema.items, item, is_default=is_default)
    out.append(0)


def _write_record(out: bytearray, schema: AvroType, value: Any, *, is_default: bool) -> None:
    _check(isinstance(value, dict), schema, value)
    unknown = sorted(value.keys() - {field.name for field in schema.fields})
    if unknown:
        raise MalformedValue(f"{schema.full_name} has no field {', '.join(unknown)}")
    for field in schema.fields:
        if field.name in value:
            _within(field.name, out, field.type, value[field.name], is_default=is_default)
        else:
            _write_default(out, schema, field)


def _write_default(out: bytearray, schema: AvroType, field: AvroField) -> None:
    if field.default is NO_DEFAULT:
        raise MalformedValue(f"the field {field.name} of {schema.full_name} is missing, and has no default")
    _within(field.name, out, field.type, field.default, is_default=True)


def _within(step: str, out: bytearray, schema: AvroType, value: Any, *, is_default: bool = False) -> None:
    try:
        _write(out, schema, value, is_default=is_default)
    except MalformedValue as error:
        raise error.within(step) from None


def _check(is_valid: bool, schema: AvroType, value: Any) -> None:
    if not is_valid:
        size = f" of {schema.size} bytes" if schema.kind == "fixed" else ""
        symbols = f" ({', '.join(schema.symbols)})" if schema.kind == "enum" else ""
        raise MalformedValue(f"{_shown(value)} is not a {schema.full_name}{size}{symbols}")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _float_bytes(schema: AvroType, value: Any) -> bytes:
    if value in ("NaN", "Infinity", "-Infinity"):
        value = float(value)
    _check(isinstance(value, float) or _is_integer(value), schema, value)
    try:
        return struct.pack("<f" if schema.kind == "float" else "<d", value)
    except (OverflowError, struct.error):
        raise MalformedValue(f"{value} is too large for a {schema.kind}") from None


def _latin_bytes(schema: AvroType, value: Any) -> bytes:
    """Return bytes, which JSON has as characters below 256."""
    _check(isinstance(value, str), schema, value)
    try:
        data: bytes = value.encode("latin-1")
    except UnicodeEncodeError:
        raise MalformedValue(f"{_shown(value)} has characters above \\u00ff, which are not bytes") from None
    return data


def _write_text(out: bytearray, text: str) -> None:
    try:
        _write_bytes(out, text.encode())
    except UnicodeEncodeError:
        raise MalformedValue(
            f"{_shown(text)} has half of a surrogate pair, which UTF-8 cannot have"
        ) from None


def _write_bytes(out: bytearray, data: bytes) -> None:
    _write_long(out, len(data))
    out += data


def _write_long(out: bytearray, value: int) -> None:
    number = value << 1 if value >= 0 else (-value << 1) - 1
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
