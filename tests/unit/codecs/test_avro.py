"""Avro to rows and back: schemas of any shape, arbitrary bytes, and types that cannot be columns."""

import json
from collections.abc import Iterator
from decimal import Decimal
from io import BytesIO
from itertools import count
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from fastavro import schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from barnabas.codecs import BinaryFormat, CodecSpec
from barnabas.codecs.columns import decoded, encoded, row_type
from barnabas.codecs.errors import SchemaError
from barnabas.codecs.framing import Frame

INT = st.integers(-(2**31), 2**31 - 1)
LONG = st.integers(-(2**63), 2**63 - 1)
MILLIS = st.integers(-(2**50), 2**50).map(lambda value_ms: value_ms * 1_000)
FLAT: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("boolean", st.booleans()),
    ("int", INT),
    ("long", LONG),
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
    ("bytes", st.binary(max_size=20)),
    ("string", st.text(max_size=20)),
    ({"type": "string", "logicalType": "uuid"}, st.uuids().map(str)),
    ({"type": "int", "logicalType": "date"}, INT),
    ({"type": "int", "logicalType": "time-millis"}, INT),
    ({"type": "long", "logicalType": "timestamp-micros"}, LONG),
    ({"type": "long", "logicalType": "timestamp-millis"}, MILLIS),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, LONG),
    ({"type": "long", "logicalType": "local-timestamp-millis"}, MILLIS),
    ({"type": "long", "logicalType": "timestamp-nanos"}, LONG),
]


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    top = 10**precision - 1
    return st.integers(-top, top).map(lambda digits: Decimal(f"{digits}e-{scale}"))


@st.composite
def typed(draw: Any, names: Iterator[int], depth: int = 0) -> tuple[Any, st.SearchStrategy[Any]]:
    """Generate an Avro type and its values in rows."""
    deep = ["record", "array", "map", "optional", "union"] if depth < 3 else []
    match draw(st.sampled_from(["flat", "flat", "enum", "fixed", "uuid", "decimal", "small", *deep])):
        case "enum":
            kind = {"type": "enum", "name": f"n{next(names)}", "symbols": ["A", "B", "C"]}
            return kind, st.sampled_from(["A", "B", "C"])
        case "fixed":
            size = draw(st.integers(1, 5))
            kind = {"type": "fixed", "name": f"n{next(names)}", "size": size}
            return kind, st.binary(min_size=size, max_size=size)
        case "uuid":
            kind = {"type": "fixed", "name": f"n{next(names)}", "size": 16, "logicalType": "uuid"}
            return kind, st.uuids().map(str)
        case "decimal":
            precision = draw(st.integers(1, 38))
            scale = draw(st.integers(0, precision))
            kind = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
            return kind, decimals(precision, scale)
        case "small":
            logical = {"logicalType": "decimal", "precision": 4, "scale": 2}
            return {"type": "fixed", "name": f"n{next(names)}", "size": 2, **logical}, decimals(4, 2)
        case "record":
            return draw(record(names, depth + 1))
        case "array":
            kind, values = draw(typed(names, depth + 1))
            return {"type": "array", "items": kind}, st.lists(values, max_size=3)
        case "map":
            kind, values = draw(typed(names, depth + 1))
            pairs = st.dictionaries(st.text(max_size=5), values, max_size=3)
            return {"type": "map", "values": kind}, pairs.map(lambda found: list(found.items()))
        case "optional":
            kind, values = draw(st.sampled_from(FLAT)) if depth == 3 else draw(record(names, depth + 1))
            return draw(st.sampled_from([["null", kind], [kind, "null"]])), st.none() | values
        case "union":
            return draw(union(names, depth + 1))
    return draw(st.sampled_from(FLAT))


@st.composite
def union(draw: Any, names: Iterator[int], depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
    members = [("int", INT), ("string", st.text(max_size=5)), ("long", LONG), draw(record(names, depth))]
    values = [
        found.map(
            lambda value, index=index: {
                f"member{each}": value if each == index else None for each in range(4)
            }
        )
        for index, (_, found) in enumerate(members)
    ]
    kinds = [kind for kind, _ in members]
    where = draw(st.integers(0, 5))
    if where == 5:
        return kinds, st.one_of(values)
    return [*kinds[:where], "null", *kinds[where:]], st.one_of(st.none(), *values)


@st.composite
def record(draw: Any, names: Iterator[int], depth: int = 0) -> tuple[Any, st.SearchStrategy[Any]]:
    fields = [draw(typed(names, depth)) for _ in range(draw(st.integers(1, 4)))]
    kind = {
        "type": "record",
        "name": f"n{next(names)}",
        "fields": [{"name": f"f{index}", "type": each} for index, (each, _) in enumerate(fields)],
    }
    return kind, st.fixed_dictionaries({f"f{index}": values for index, (_, values) in enumerate(fields)})


@st.composite
def tables(draw: Any) -> tuple[Any, list[Any]]:
    kind, rows = draw(record(count()))
    return kind, draw(st.lists(rows, min_size=1, max_size=5))


def spec(schema: Any, frame: Frame = Frame()) -> CodecSpec:  # noqa: B008
    return CodecSpec(BinaryFormat.AVRO, json.dumps(schema).encode(), "", frame)


def of(*types: Any) -> dict[str, Any]:
    fields = [{"name": f"f{index}", "type": each} for index, each in enumerate(types)]
    return {"type": "record", "name": "R", "namespace": "shop", "fields": fields}


def datum(schema: Any, value: Any) -> bytes:
    stream = BytesIO()
    schemaless_writer(stream, schema, value)
    return stream.getvalue()


@given(tables(), st.sampled_from([Frame(), Frame(True, 9)]))
def test_rows_of_any_schema_round_trip(table: tuple[Any, list[Any]], frame: Frame) -> None:
    schema, rows = table
    codec = spec(schema, frame).codec()
    given = pa.array(rows, row_type(codec))
    values, misfits = encoded(codec, given, [True] * len(rows))
    assert misfits.null_count == len(rows), misfits
    found, reasons = decoded(codec, values)
    assert reasons.null_count == len(rows), reasons
    assert found.equals(given)


@given(tables(), st.lists(st.binary(max_size=40), max_size=5))
def test_any_bytes_are_a_row_or_have_a_reason(table: tuple[Any, list[Any]], values: list[bytes]) -> None:
    codec = spec(table[0]).codec()
    found, reasons = decoded(codec, pa.array(values, pa.binary()))
    assert len(found) == len(values)
    for row, reason in zip(found.is_valid().to_pylist(), reasons.to_pylist(), strict=True):
        assert row == (reason is None)


def test_values_equal_those_of_fastavro_with_logical_types() -> None:
    schema = of(
        {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        {"type": "enum", "name": "E", "symbols": ["A", "B"]},
        ["null", "shop.E"],
        {"type": "map", "values": "shop.E"},
        {"type": "string", "logicalType": "uuid"},
    )
    value = {"f0": Decimal("-12.50"), "f1": "B", "f2": "A", "f3": {"x": "B"}, "f4": UUID(int=7)}
    codec = spec(schema).codec()
    row = {**value, "f3": [("x", "B")], "f4": str(UUID(int=7))}
    assert codec.decode(datum(schema, value)) == row
    assert codec.encode(row) == datum(schema, value)
    assert codec.label == "Avro of shop.R"
    assert codec.columns == pa.schema(
        [
            pa.field("f0", pa.decimal128(6, 2), False),
            pa.field("f1", pa.string(), False),
            pa.field("f2", pa.string(), True),
            pa.field("f3", pa.map_(pa.string(), pa.field("value", pa.string(), False)), False),
            pa.field("f4", pa.string(), False),
        ]
    )


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 2}


@pytest.mark.parametrize(
    ("kind", "good", "value", "says"),
    [
        ("string", "x", b"\x0aab", "it ends too early, after 3 bytes"),
        ("int", 5, b"\x02\x02", "1 of its 2 bytes are left over"),
        ("string", "x", b"\x02\xff", "a text in it is not UTF-8"),
        (["null", "int"], None, b"\x08\x02", "a union in it has no such branch"),
        (ENUM, "A", b"\x01", "an enum in it has the number -1; A, B are 0 to 1"),
        (ENUM, "A", b"\x04", "an enum in it has the number 2; A, B are 0 to 1"),
        ("int", 5, b"\x80\x80\x80\x80\x80\x02", "Value 34359738368 too large"),
        (DECIMAL, Decimal(7), b"\x04\x01\x00", "a decimal in it has more than 2 digits"),
        (
            "int",
            5,
            b"\0\0\0\0\x01\x02",
            "; it begins like a value of a schema registry: set framing",
        ),
    ],
)
def test_an_invalid_value_has_a_reason_and_others_pass(kind: Any, good: Any, value: bytes, says: str) -> None:
    codec = spec(of(kind)).codec()
    neighbour = codec.encode({"f0": good})
    found, reasons = decoded(codec, pa.array([neighbour, value, None, neighbour], pa.binary()))
    assert found.is_valid().to_pylist() == [True, False, False, True]
    assert str(reasons[1]).startswith("the value is not Avro of shop.R: ")
    assert says in str(reasons[1])
    assert str(reasons[2]) == "the value is null"


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        ("int", None, "f0 is null, which the schema does not allow"),
        ({"type": "array", "items": "int"}, [1, None], "f0[1] is null, which"),
        ({"type": "map", "values": of("int")}, [("a", {"f0": None})], "f0[a].f0 is null, which"),
        (ENUM, "C", "f0 is 'C'; it must be A or B"),
        ({"type": "fixed", "name": "F", "size": 2}, b"abc", "f0 has 3 bytes; it must have 2"),
        (
            {"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"},
            "x",
            "f0 is 'x'; it must be a uuid",
        ),
        (
            ["int", "string"],
            {"member0": 1, "member1": "x"},
            "f0 has 2 of member0, member1; it must have exactly",
        ),
        (["int", "string"], {}, "f0 has 0 of member0, member1"),
    ],
)
def test_a_row_that_cannot_be_encoded_has_a_reason_with_the_field(kind: Any, value: Any, says: str) -> None:
    kind = {**kind, "values": {**kind["values"], "name": "Inner"}} if says.startswith("f0[a]") else kind
    codec = spec(of(kind)).codec()
    rows = pa.array([{"f0": value}], row_type(codec))
    values, misfits = encoded(codec, rows, [True])
    assert values.null_count == 1
    assert str(misfits[0]).startswith("the row cannot be Avro of shop.R: ")
    assert says in str(misfits[0])


SELF = {"type": "record", "name": "shop.R", "fields": [{"name": "next", "type": ["null", "shop.R"]}]}


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ("string", "the schema is of string; it must be of a record"),
        (["null", of("int")], "the schema is of a union; it must be of a record"),
        (of("null"), "f0: null alone cannot be a column"),
        (of(["null"]), "f0: a union of nothing but null"),
        (of({"type": "array", "items": "null"}), "f0[]: null alone"),
        (SELF, "next: shop.R contains itself"),
        (of("shop.Other"), "the schema is not valid Avro: there is no type of the name shop.Other"),
        (of({"type": "record", "name": "E", "fields": []}), "f0: the record shop.E has no fields"),
        (of({"type": "fixed", "name": "F", "size": 0}), "f0: the size of fixed is 0; it must be at least 1"),
        (of({"type": "fixed", "name": "F"}), "'size' is missing in one of its types"),
        (
            of({"type": "bytes", "logicalType": "decimal", "precision": 50}),
            "f0: the precision of decimal is 50; it must be 1 to 38",
        ),
        (
            of({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": None}),
            "f0: the scale of decimal is None; it must be a number",
        ),
        (
            of({"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 5}),
            "the schema is not valid Avro: decimal precision of 5 doesn't fit",
        ),
        (
            {
                "type": "record",
                "name": "R",
                "fields": [{"name": "a", "type": "int"}, {"name": "A", "type": "int"}],
            },
            "A: the name occurs twice",
        ),
    ],
)
def test_a_schema_that_cannot_be_columns_is_rejected_with_the_field(schema: Any, says: str) -> None:
    with pytest.raises(SchemaError) as caught:
        spec(schema).codec()
    assert says in str(caught.value)


def test_a_schema_that_is_not_json_is_rejected() -> None:
    with pytest.raises(SchemaError, match="the schema is not valid JSON: Expecting property name"):
        CodecSpec(BinaryFormat.AVRO, b"{no", "", Frame()).codec()
