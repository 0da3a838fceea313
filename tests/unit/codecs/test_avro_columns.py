"""Columns of flat Avro records are the rows that the codec of single values returns, whatever the bytes are."""

import json
import math
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import example, given
from hypothesis import strategies as st

from barnabas.codecs import ReadRows
from barnabas.codecs.avro import AvroCodec
from barnabas.codecs.columns import _decoded_singly, _numbers, decoded
from barnabas.codecs.framing import Frame

PLAIN = Frame()
FRAMED = Frame(confluent=True, schema_id=7)
LONGS = st.integers(-(2**63), 2**63 - 1)
KINDS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", LONGS),
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
    ("bytes", st.binary(max_size=40)),
    ("string", st.text(max_size=40)),
    ({"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}, st.sampled_from("ABC")),
    ({"type": "string", "logicalType": "uuid"}, st.uuids().map(str)),
    ({"type": "int", "logicalType": "date"}, st.integers(-(2**31), 2**31 - 1)),
    ({"type": "long", "logicalType": "timestamp-micros"}, LONGS),
    ({"type": "long", "logicalType": "timestamp-millis"}, LONGS),
    ({"type": "long", "logicalType": "local-timestamp-millis"}, LONGS),
]


@st.composite
def flat_records(draw: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Generate a flat schema and its rows."""
    fields, columns = [], {}
    for index in range(draw(st.integers(1, 6))):
        kind, values = draw(st.sampled_from(KINDS))
        if isinstance(kind, dict) and "name" in kind:
            kind = {**kind, "name": f"E{index}"}
        nullable = draw(st.sampled_from(["no", "first", "last"]))
        if nullable != "no":
            kind = ["null", kind] if nullable == "first" else [kind, "null"]
            values = st.one_of(st.none(), values)
        fields.append({"name": f"f{index}", "type": kind})
        columns[f"f{index}"] = values
    rows = draw(st.lists(st.fixed_dictionaries(columns), max_size=12))
    return {"type": "record", "name": "R", "fields": fields}, rows


def record(**fields: Any) -> dict[str, Any]:
    """Return a schema with these fields."""
    described = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"type": "record", "name": "R", "fields": described}


def without_logical(part: Any) -> Any:
    """Return a schema whose values are numbers."""
    if isinstance(part, list):
        return [without_logical(each) for each in part]
    if isinstance(part, dict):
        return {key: without_logical(value) for key, value in part.items() if key != "logicalType"}
    return part


def encoded(schema: dict[str, Any], rows: Sequence[dict[str, Any]], header: bytes) -> list[bytes]:
    parsed = parse_schema(without_logical(schema))
    values = []
    for row in rows:
        stream = BytesIO(header)
        stream.seek(len(header))
        schemaless_writer(stream, parsed, row)
        values.append(stream.getvalue())
    return values


def check(codec: AvroCodec, values: pa.Array) -> ReadRows | None:
    """Compare both ways; return what was read as columns."""
    rows, reasons = _decoded_singly(codec, values)
    found_rows, found_reasons = both(codec, values)
    assert found_rows.type == rows.type
    numbers = _numbers(rows.type)  # Python's times have smaller ranges
    assert repr(found_rows.cast(numbers).to_pylist()) == repr(rows.cast(numbers).to_pylist())
    assert found_reasons.to_pylist() == reasons.to_pylist()
    found_rows.validate(full=True)
    return codec.read_column(values)


def both(codec: AvroCodec, values: pa.Array) -> tuple[pa.Array, pa.Array]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("barnabas.codecs.columns._MANY", 0)
        return decoded(codec, values)


@given(flat_records(), st.booleans(), st.data())
def test_columns_are_the_rows_of_single_values(
    records: tuple[dict[str, Any], list[dict[str, Any]]], framed: bool, data: Any
) -> None:
    """Some values are cut, changed, or no values at all; the column may be a slice."""
    schema, rows = records
    frame = FRAMED if framed else PLAIN
    header = frame.header()
    assert header is not None
    values: list[bytes | None] = list(encoded(schema, rows, header))
    for index, value in enumerate(values):
        assert value is not None
        match data.draw(st.sampled_from(["keep", "keep", "cut", "change", "more", "random", "null"])):
            case "cut" if value:
                values[index] = value[: data.draw(st.integers(0, len(value) - 1))]
            case "change" if value:
                at = data.draw(st.integers(0, len(value) - 1))
                values[index] = value[:at] + bytes([data.draw(st.integers(0, 255))]) + value[at + 1 :]
            case "more":
                values[index] = value + b"\0"
            case "random":
                values[index] = header + data.draw(st.binary(max_size=30))
            case "null":
                values[index] = None
    first = data.draw(st.integers(0, len(values)))
    codec = AvroCodec(json.dumps(schema), frame)
    check(codec, pa.array(values, pa.binary())[first:])
    check(codec, pa.array(values, pa.large_binary()))


@given(st.binary(max_size=14))
@example(b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01")
@example(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
@example(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02")
@example(b"\x80\x00")
def test_numbers_of_any_bytes_are_the_same(value: bytes) -> None:
    for kind in ("int", "long", "bytes", "string", ["null", "long"]):
        schema = record(n=kind)
        check(AvroCodec(json.dumps(schema), PLAIN), pa.array([value, b"\x02"], pa.binary()))


def test_all_good_values_are_read_together() -> None:
    schema = record(a="int", b=["null", "string"])
    rows = [{"a": number, "b": None if number % 3 else f"text {number}"} for number in range(500)]
    values = pa.array(encoded(schema, rows, b""), pa.binary())
    read = check(AvroCodec(json.dumps(schema), PLAIN), values)
    assert read is not None
    assert read.rows.to_pylist() == rows
    assert list(read.positions) == list(range(500))


def test_a_number_that_is_none_is_no_null() -> None:
    schema = record(a="double", b=["float", "null"])
    values = pa.array(
        encoded(schema, [{"a": math.nan, "b": math.nan}, {"a": math.inf, "b": None}], b""), pa.binary()
    )
    read = AvroCodec(json.dumps(schema), PLAIN).read_column(values)
    assert read is not None
    [first, second] = read.rows.to_pylist()
    assert math.isnan(first["a"])
    assert math.isnan(first["b"])
    assert second == {"a": math.inf, "b": None}


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "array", "items": "int"},
        {"type": "map", "values": "int"},
        {"type": "record", "name": "N", "fields": [{"name": "x", "type": "int"}]},
        {"type": "fixed", "name": "F", "size": 4},
        {"type": "bytes", "logicalType": "decimal", "precision": 4},
        ["null", "int", "string"],
        ["int"],
    ],
    ids=str,
)
def test_other_schemas_are_read_by_single_values(kind: Any) -> None:
    schema = record(a="int", b=kind)
    assert AvroCodec(json.dumps(schema), PLAIN).read_column(pa.array([b"\x02\x02"], pa.binary())) is None


def test_a_text_that_is_not_utf_8_is_found_by_single_values() -> None:
    schema = record(a="string")
    codec = AvroCodec(json.dumps(schema), PLAIN)
    values = pa.array([b"\x02a", b"\x04\xff\xfe", b"\x02b"], pa.binary())
    assert check(codec, values) is None
    rows, reasons = both(codec, values)
    assert rows.to_pylist() == [{"a": "a"}, None, {"a": "b"}]
    assert "not UTF-8" in reasons.to_pylist()[1]
