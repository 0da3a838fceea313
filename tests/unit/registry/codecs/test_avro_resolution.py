"""Values of one schema of Avro, read with another; fastavro is the reference."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer

from barnabas.registry.avro.model import AvroType
from barnabas.registry.avro.schema import AvroSchema
from barnabas.registry.codecs.avro_resolution import translate_avro
from barnabas.registry.codecs.errors import MalformedValue


def root_of(schema: Any) -> AvroType:
    return AvroSchema.parse(json.dumps(schema), {}, is_new=True).root


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    parts = [{"name": each, "type": "int"} if isinstance(each, str) else each for each in fields]
    return {"type": "record", "name": name, "fields": parts}


def enum(*symbols: str, **attributes: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **attributes}


DEFAULT = {"name": "b", "type": ["null", "string"], "default": None}
PAIRS: list[tuple[Any, Any, Any]] = [
    ("long", "int", 3),
    ("double", "long", 3),
    ("bytes", "string", "ü"),
    ("string", "bytes", b"abc"),
    (["null", "long"], "int", 3),
    ("long", ["int", "long"], 3),
    (["string", "int", "null"], ["null", "int"], None),
    (record("a", DEFAULT), record("a", "c"), {"a": 1, "c": 2}),
    (record({"name": "b", "type": "long", "aliases": ["a"]}), record("a"), {"a": 1}),
    (enum("A", "B"), enum("B"), "B"),
    (enum("A", default="A"), enum("A", "B"), "B"),
    ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}, [1, 2]),
    ({"type": "map", "values": "double"}, {"type": "map", "values": "int"}, {"a": 1}),
    (
        record({"name": "r", "type": ["null", record("x", DEFAULT, name="S")]}),
        record({"name": "r", "type": record("x", name="S")}),
        {"r": {"x": 1}},
    ),
]


@pytest.mark.parametrize(("reader", "writer", "value"), PAIRS)
def test_values_are_those_of_fastavro(reader: Any, writer: Any, value: Any) -> None:
    stream = BytesIO()
    schemaless_writer(stream, parse_schema(writer), value)
    expected = schemaless_reader(BytesIO(stream.getvalue()), parse_schema(writer), parse_schema(reader))
    translated = translate_avro(root_of(reader), root_of(writer), stream.getvalue())
    assert schemaless_reader(BytesIO(translated), parse_schema(reader), None) == expected


@pytest.mark.parametrize(
    ("reader", "writer", "value", "problem"),
    [
        ("int", "long", 3, "long cannot be read as int"),
        ("string", "bytes", b"\xff", "not UTF-8"),
        (enum("A"), enum("A", "B"), "B", "not a symbol of E"),
        (["int"], "string", "x", "no branch for string"),
        (record("a", "b"), record("a"), {"a": 1}, "the field b of R is missing"),
    ],
)
def test_values_that_the_reader_cannot_have_are_refused(
    reader: Any, writer: Any, value: Any, problem: str
) -> None:
    stream = BytesIO()
    schemaless_writer(stream, parse_schema(writer), value)
    with pytest.raises(MalformedValue, match=problem):
        translate_avro(root_of(reader), root_of(writer), stream.getvalue())


def decimal(precision: int, scale: int, size: int = 0) -> dict[str, Any]:
    kind = {"type": "fixed", "name": "D", "size": size} if size else {"type": "bytes"}
    return {**kind, "logicalType": "decimal", "precision": precision, "scale": scale}


def logical(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "logicalType": name}


def translated(reader: Any, writer: Any, value: Any) -> Any:
    """Write a value, translate it, and read it, as fastavro does."""
    stream = BytesIO()
    schemaless_writer(stream, parse_schema(writer), value)
    data = translate_avro(root_of(reader), root_of(writer), stream.getvalue())
    return schemaless_reader(BytesIO(data), parse_schema(reader), None)


AT = datetime(2026, 5, 17, 1, 2, 3, 456_000, UTC)


@pytest.mark.parametrize(
    ("reader", "writer", "value"),
    [
        (decimal(12, 4), decimal(10, 2), Decimal("19.99")),
        (decimal(12, 4), decimal(10, 2), Decimal("-327.68")),
        (decimal(10, 2), decimal(12, 4), Decimal("0.5000")),
        (decimal(12, 4, 6), decimal(10, 2, 6), Decimal("-19.99")),
        (["null", decimal(12, 2)], decimal(10, 2), Decimal("-0.01")),
        (logical("long", "timestamp-micros"), logical("long", "timestamp-millis"), AT),
        (logical("long", "timestamp-millis"), logical("long", "timestamp-micros"), AT),
        (logical("long", "time-micros"), logical("int", "time-millis"), AT.time()),
    ],
)
def test_logical_types_keep_their_values(reader: Any, writer: Any, value: Any) -> None:
    assert translated(reader, writer, value) == value


def test_a_coarser_unit_is_rounded_down() -> None:
    before_1970 = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
    found = translated(logical("long", "timestamp-millis"), logical("long", "timestamp-micros"), before_1970)
    assert found == before_1970.replace(microsecond=999_000)


def test_a_number_without_a_logical_type_is_the_same_number() -> None:
    assert translated("long", logical("long", "timestamp-millis"), AT) == int(AT.timestamp() * 1_000)


@pytest.mark.parametrize(
    ("reader", "writer", "value", "problem"),
    [
        (decimal(10, 1), decimal(10, 2), Decimal("19.99"), r"1999e-2, a decimal\(10,2\), cannot be read"),
        (decimal(4, 4), decimal(10, 2), Decimal("1.00"), r"cannot be read as a decimal\(4,4\)"),
        (decimal(12, 4, 2), decimal(4, 2, 2), Decimal("99.99"), "does not fit in the 2 bytes of D"),
        (
            logical("long", "time-micros"),
            logical("long", "timestamp-millis"),
            AT,
            "cannot be read as time-micros",
        ),
    ],
)
def test_logical_types_that_cannot_keep_their_values_are_refused(
    reader: Any, writer: Any, value: Any, problem: str
) -> None:
    with pytest.raises(MalformedValue, match=problem):
        translated(reader, writer, value)
