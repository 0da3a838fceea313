"""Columns of Avro records are the rows that the codec of single values returns, whatever the bytes are."""

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

from barnabas.codecs.avro import AvroCodec
from barnabas.codecs.framing import Frame
from unit.codecs.both_ways import check, decoded_as_columns

PLAIN = Frame()
FRAMES = [Frame(), Frame(confluent=True, schema_id=7), Frame(confluent=True)]
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
    ({"type": "fixed", "name": "F", "size": 3}, st.binary(min_size=3, max_size=3)),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, st.binary(max_size=3)),
    ({"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9}, st.binary(max_size=20)),
    (
        {"type": "fixed", "name": "F", "size": 12, "logicalType": "decimal", "precision": 18},
        st.integers(-(10**18), 10**18).map(lambda number: number.to_bytes(12, "big", signed=True)),
    ),
]


@st.composite
def types(draw: Any, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    """Generate a type and a strategy for its values."""
    forms = ["value"] * 4 + (["array", "map", "record", "union"] if depth else [])
    name = f"N{draw(st.uuids()).hex}"
    match draw(st.sampled_from(forms)):
        case "array":
            kind, values = draw(nullable(depth - 1))
            return {"type": "array", "items": kind}, st.lists(values, max_size=5)
        case "map":
            kind, values = draw(nullable(depth - 1))
            return {"type": "map", "values": kind}, st.dictionaries(st.text(max_size=4), values, max_size=5)
        case "record":
            fields = draw(st.lists(nullable(depth - 1), min_size=1, max_size=3))
            kind = {**record(**{f"x{index}": kind for index, (kind, _) in enumerate(fields)}), "name": name}
            return kind, st.fixed_dictionaries(
                {f"x{index}": values for index, (_, values) in enumerate(fields)}
            )
        case "union":
            items, item_values = draw(types(0))
            kinds = [{"type": "array", "items": items}, "boolean"]
            return kinds, st.one_of(st.lists(item_values, max_size=3), st.booleans())
    kind, values = draw(st.sampled_from(KINDS))
    return {**kind, "name": name} if isinstance(kind, dict) and "name" in kind else kind, values


@st.composite
def nullable(draw: Any, depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
    """Generate a type that may be in a union with null."""
    kind, values = draw(types(depth))
    branches = kind if isinstance(kind, list) else [kind]
    match draw(st.sampled_from(["no", "first", "last"])):
        case "first":
            return ["null", *branches], st.one_of(st.none(), values)
        case "last":
            return [*branches, "null"], st.one_of(st.none(), values)
    return kind, values


@st.composite
def records(draw: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Generate a schema and its rows."""
    fields = draw(st.lists(nullable(2), min_size=1, max_size=4))
    columns = {f"f{index}": values for index, (_, values) in enumerate(fields)}
    rows = draw(st.lists(st.fixed_dictionaries(columns), max_size=12))
    return record(**{f"f{index}": kind for index, (kind, _) in enumerate(fields)}), rows


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


@given(records(), st.sampled_from(FRAMES), st.data())
def test_columns_are_the_rows_of_single_values(
    generated: tuple[dict[str, Any], list[dict[str, Any]]], frame: Frame, data: Any
) -> None:
    """Some values are cut, changed, or no values at all; the column may be a slice."""
    schema, rows = generated
    header = frame.header().content
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


def test_with_a_registry_values_of_the_own_schema_are_read_together() -> None:
    schema = record(a="int")
    codec = AvroCodec(json.dumps(schema), Frame(True, None, "http://127.0.0.1:1", own_id=7))
    own, other = encoded(schema, [{"a": 1}], b"\0\0\0\0\x07"), encoded(schema, [{"a": 2}], b"\0\0\0\0\x08")
    read = codec.read_column(pa.array([*own, *other, *own], pa.binary()))
    assert read is not None
    assert list(read.positions) == [0, 2]


@pytest.mark.parametrize(
    "kind", [{"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}, ["int"]], ids=str
)
def test_other_schemas_are_read_by_single_values(kind: Any) -> None:
    schema = record(a="int", b=kind)
    assert AvroCodec(json.dumps(schema), PLAIN).read_column(pa.array([b"\x02\x02"], pa.binary())) is None


NESTED = record(
    id="long",
    lines={"type": "array", "items": {**record(sku="string", count=["null", "int"]), "name": "Line"}},
    tags={"type": "map", "values": {"type": "array", "items": "long"}},
    address=["null", {**record(street="string", parts={"type": "array", "items": "int"}), "name": "Address"}],
)


def nested_row(number: int) -> dict[str, Any]:
    address = {"street": f"street {number}", "parts": [number, number + 1]}
    return {
        "id": number,
        "lines": [{"sku": f"s{index}", "count": index or None} for index in range(number % 7)],
        "tags": {f"t{index}": list(range(index)) for index in range(number % 4)},
        "address": address if number % 3 else None,
    }


def test_nested_values_are_read_together() -> None:
    rows = [nested_row(number) for number in range(500)]
    values = pa.array(encoded(NESTED, rows, b""), pa.binary())
    read = check(AvroCodec(json.dumps(NESTED), PLAIN), values)
    assert read is not None
    assert len(read.positions) == 500
    assert read.rows[6].as_py() == {**rows[6], "tags": list(rows[6]["tags"].items())}


def test_lists_may_be_much_longer_than_expected_and_records_around_them_may_be_damaged() -> None:
    rows = [{**nested_row(number), "tags": {"a": list(range(100 * number))}} for number in range(60)]
    values = encoded(NESTED, rows, b"")
    values[::7] = [value[:-2] for value in values[::7]]
    read = check(AvroCodec(json.dumps(NESTED), PLAIN), pa.array(values, pa.binary()))
    assert read is not None
    assert len(read.positions) == 51


def test_lists_in_several_blocks_are_read_also_with_the_sizes_of_blocks() -> None:
    schema = record(items={"type": "array", "items": "int"})
    value = b"\x04\x02\x04" + b"\x03\x04\x06\x08" + b"\x00"  # two items, then minus two with their size
    read = check(AvroCodec(json.dumps(schema), PLAIN), pa.array([value], pa.binary()))
    assert read is not None
    assert read.rows.to_pylist() == [{"items": [1, 2, 3, 4]}]


@pytest.mark.parametrize(
    "count", [b"\x02", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\xff" * 9 + b"\x01"]
)
def test_lists_that_claim_more_items_than_they_have_bytes_are_not_read(count: bytes) -> None:
    codec = AvroCodec(json.dumps(record(items={"type": "array", "items": "int"})), PLAIN)
    read = codec.read_column(pa.array([count], pa.binary()))
    assert read is not None
    assert not len(read.positions)


def test_a_map_with_equal_keys_is_read_singly() -> None:
    schema = record(tags={"type": "map", "values": "int"})
    entries = b"\x02a\x02" + b"\x02b\x04" + b"\x02a\x06"
    values = pa.array([b"\x06" + entries + b"\x00", b"\x02\x02a\x02\x00"], pa.binary())
    read = check(AvroCodec(json.dumps(schema), PLAIN), values)
    assert read is not None
    assert list(read.positions) == [1]


def test_a_map_with_many_keys_is_read_singly() -> None:
    schema = record(tags={"type": "map", "values": "int"})
    rows = [{"tags": {str(number): number for number in range(size)}} for size in (64, 65)]
    read = check(AvroCodec(json.dumps(schema), PLAIN), pa.array(encoded(schema, rows, b""), pa.binary()))
    assert read is not None
    assert list(read.positions) == [0]


def test_long_decimals_are_read_singly() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}
    numbers = [0, -1, 2**63 - 1, 2**63, -(2**63) + 1, -(2**63) - 1, 10**30]
    rows = [{"n": number.to_bytes(16, "big", signed=True)} for number in numbers]
    schema = record(n=kind)
    read = check(AvroCodec(json.dumps(schema), PLAIN), pa.array(encoded(schema, rows, b""), pa.binary()))
    assert read is not None
    assert list(read.positions) == [0, 1, 2, 4]


def test_a_text_that_is_not_utf_8_is_found_by_single_values() -> None:
    schema = record(a="string")
    codec = AvroCodec(json.dumps(schema), PLAIN)
    values = pa.array([b"\x02a", b"\x04\xff\xfe", b"\x02b"], pa.binary())
    assert check(codec, values) is None
    rows, reasons = decoded_as_columns(codec, values)
    assert rows.to_pylist() == [{"a": "a"}, None, {"a": "b"}]
    assert "not UTF-8" in reasons.to_pylist()[1]
