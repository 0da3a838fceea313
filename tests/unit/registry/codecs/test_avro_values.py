"""Avro's binary encoding as JSON and back, with fastavro as the reference."""

import json
import struct
from io import BytesIO
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer

from barnabas.registry.avro.model import AvroType
from barnabas.registry.avro.schema import AvroSchema
from barnabas.registry.codecs.avro_reader import read_avro
from barnabas.registry.codecs.avro_writer import write_avro
from barnabas.registry.codecs.errors import MalformedValue

ENUM = {"type": "enum", "name": "shop.E", "symbols": ["A", "B"]}
TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [{"name": "n", "type": "int"}, {"name": "next", "type": ["null", "Tree"], "default": None}],
}
#: Schemas, values in Avro's JSON encoding, and values of fastavro.
VALUES: list[tuple[Any, Any, Any]] = [
    ("null", None, None),
    ("boolean", True, True),
    ("int", -(2**31), -(2**31)),
    ("long", 2**63 - 1, 2**63 - 1),
    ("float", 1.5, 1.5),
    ("double", 0.1, 0.1),
    ("string", "ü", "ü"),
    ("bytes", "\u00ff\u0000", b"\xff\0"),
    ({"type": "fixed", "name": "F", "size": 2}, "ab", b"ab"),
    (ENUM, "B", "B"),
    ({"type": "array", "items": "int"}, [1, 2, 3], [1, 2, 3]),
    ({"type": "array", "items": "int"}, [], []),
    ({"type": "map", "values": "string"}, {"a": "b"}, {"a": "b"}),
    (["null", "int"], None, None),
    (["null", "int"], {"int": 3}, 3),
    (["string", ENUM], {"shop.E": "A"}, ("shop.E", "A")),
    (TREE, {"n": 1, "next": {"Tree": {"n": 2, "next": None}}}, {"n": 1, "next": {"n": 2, "next": None}}),
]


def root_of(schema: Any) -> AvroType:
    return AvroSchema.parse(json.dumps(schema), {}, is_new=True).root


def reference_bytes(schema: Any, value: Any) -> bytes:
    stream = BytesIO()
    schemaless_writer(stream, parse_schema(schema), value)
    return stream.getvalue()


@pytest.mark.parametrize(("schema", "value", "reference"), VALUES)
def test_values_have_the_bytes_of_fastavro(schema: Any, value: Any, reference: Any) -> None:
    data = reference_bytes(schema, reference)
    assert write_avro(root_of(schema), value) == data
    assert read_avro(root_of(schema), data) == value


def test_numbers_that_json_does_not_have_are_texts() -> None:
    for value in ("NaN", "Infinity", "-Infinity"):
        assert read_avro(root_of("double"), write_avro(root_of("double"), value)) == value


def test_blocks_may_have_a_size() -> None:
    data = bytes([0x03, 0x04, 0x02, 0x04, 0x02, 0x06, 0x00])  # two items in two bytes, then one
    assert read_avro(root_of({"type": "array", "items": "int"}), data) == [1, 2, 3]


def test_a_value_of_a_union_may_do_without_the_name_of_its_branch() -> None:
    assert write_avro(root_of(["null", "string"]), "a") == write_avro(
        root_of(["null", "string"]), {"string": "a"}
    )
    with pytest.raises(MalformedValue, match="fits several branches of int, long"):
        write_avro(root_of(["int", "long"]), 1)


def test_missing_fields_get_their_defaults() -> None:
    data = write_avro(root_of(TREE), {"n": 1})
    assert schemaless_reader(BytesIO(data), parse_schema(TREE), None) == {"n": 1, "next": None}


def test_the_unions_in_a_default_have_their_first_fitting_branch() -> None:
    number = {"name": "x", "type": ["int", "long"]}
    inner = {"type": "record", "name": "I", "fields": [number]}
    fields = [
        {"name": "record", "type": inner, "default": {"x": 1}},
        {"name": "items", "type": {"type": "array", "items": ["null", "I"]}, "default": [None, {"x": 2**40}]},
        {"name": "map", "type": ["I", {"type": "map", "values": "int"}], "default": {"int": 3}},
    ]
    schema = {"type": "record", "name": "R", "fields": fields}
    data = write_avro(root_of(schema), {})
    assert read_avro(root_of(schema), data) == {
        "record": {"x": {"int": 1}},
        "items": [None, {"I": {"x": {"long": 2**40}}}],
        "map": {"map": {"int": 3}},
    }
    with pytest.raises(MalformedValue, match=r"record\.x: 1 fits several branches of int, long"):
        write_avro(root_of(schema), {"record": {"x": 1}})


@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        ("int", 2**31, "is not a int"),
        ("int", True, "is not a int"),
        ("string", 1, "is not a string"),
        ("bytes", "\u0100", "not bytes"),
        ("float", 1e300, "too large"),
        (ENUM, "C", r"is not a shop.E \(A, B\)"),
        ({"type": "fixed", "name": "F", "size": 2}, "abc", "of 2 bytes"),
        ({"type": "array", "items": "int"}, [1, "x"], r"\[1\]: 'x' is not a int"),
        (["null", "int"], "x", "fits no branch of null, int"),
        (TREE, {}, "the field n of Tree is missing"),
        (TREE, {"n": 1, "m": 2}, "has no field m"),
        (TREE, {"n": 1, "next": {"Tree": {"n": "x"}}}, "next.Tree.n: 'x' is not a int"),
        (["null", "string"], {"string": "\ud800"}, "half of a surrogate pair"),
        ({"type": "map", "values": "int"}, {"\ud800": 1}, "half of a surrogate pair"),
        ("double", 10**400, "too large for a double"),
    ],
)
def test_values_that_do_not_fit_are_refused_with_their_path(schema: Any, value: Any, problem: str) -> None:
    with pytest.raises(MalformedValue, match=problem):
        write_avro(root_of(schema), value)


@pytest.mark.parametrize(
    ("schema", "data", "problem"),
    [
        ("int", b"", "ends too early"),
        ("int", b"\x02\x02", "1 of its 2 bytes are left over"),
        ("int", b"\xff" * 11, "too many bytes"),
        ("string", b"\x01", "length -1"),
        ("string", b"\x02\xff", "not UTF-8"),
        (ENUM, b"\x04", "index 2, where there are 2 symbols"),
        (["null"], b"\x02", "index 1, where there are 1 branches"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\x7f", "more than 1000000 values"),
        (TREE, b"\x00\x02" * 300, "more than 200 levels"),
    ],
)
def test_malformed_data_is_refused(schema: Any, data: bytes, problem: str) -> None:
    with pytest.raises(MalformedValue, match=problem):
        read_avro(root_of(schema), data)


def test_floats_are_little_endian() -> None:
    assert write_avro(root_of("float"), 1.5) == struct.pack("<f", 1.5)
