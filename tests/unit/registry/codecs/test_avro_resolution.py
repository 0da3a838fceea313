"""Values of one schema of Avro, read with another; fastavro is the reference."""

import json
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
