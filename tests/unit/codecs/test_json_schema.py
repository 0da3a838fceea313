"""JSON to rows: types of schemas as columns, values that do not fit, and what stays text."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.codecs.columns import decoded, row_type
from barnabas.codecs.errors import SchemaError
from barnabas.codecs.framing import Frame
from barnabas.codecs.json_schema import JsonSchemaDecoder
from barnabas.registry.json_schema.schema import JsonSchema

UTC = pa.timestamp("us", "UTC")
NULL = {"type": "null"}
STRING = {"type": "string"}
TEXT = pa.field("a", pa.string())


def of(schema: Any, dependencies: dict[str, str] | None = None) -> JsonSchemaDecoder:
    return JsonSchemaDecoder(JsonSchema.parse(json.dumps(schema), dependencies or {}, is_new=False), Frame())


def with_property(contents: Any, *required: str, **more: Any) -> dict[str, Any]:
    return {"title": "R", "type": "object", "properties": {"a": contents}, "required": [*required], **more}


def column_of(contents: Any, *required: str, **more: Any) -> pa.Field:
    return of(with_property(contents, *required, **more)).columns.field("a")


@pytest.mark.parametrize(
    ("contents", "kind"),
    [
        ({"type": "string"}, pa.string()),
        ({"type": "string", "format": "email"}, pa.string()),
        ({"type": "string", "format": "date"}, pa.date32()),
        ({"type": "string", "format": "date-time"}, UTC),
        ({"type": "integer"}, pa.int64()),
        ({"type": "number"}, pa.float64()),
        ({"type": ["integer", "number"]}, pa.float64()),
        ({"type": "boolean"}, pa.bool_()),
        ({"enum": ["small", "large"]}, pa.string()),
        ({"const": 7}, pa.int64()),
        ({"anyOf": [STRING, {"type": "string", "maxLength": 3}]}, pa.string()),
        ({"allOf": [{"type": "number"}, {"type": "integer"}]}, pa.int64()),
        ({"type": "array", "items": STRING}, pa.list_(pa.field("item", pa.string(), False))),
        ({"type": "array", "items": {"type": ["boolean", "null"]}}, pa.list_(pa.bool_())),
        (with_property(STRING, "a"), pa.struct([pa.field("a", pa.string(), False)])),
        (with_property(STRING), pa.struct([pa.field("a", pa.string())])),
    ],
)
def test_a_single_type_is_a_column_that_is_nullable_unless_it_is_required(contents: Any, kind: Any) -> None:
    assert column_of(contents, "a") == pa.field("a", kind, False)
    assert column_of(contents) == pa.field("a", kind)


@pytest.mark.parametrize(
    "contents",
    [
        {"type": ["integer", "null"]},
        {"oneOf": [{"type": "null", "title": "Not included"}, {"type": "integer"}]},
        {"anyOf": [{"type": "integer"}, NULL], "default": None},
        {"enum": [1, 2, None]},
        {"allOf": [{"type": ["integer", "null"]}, {"type": ["null", "integer", "string"]}]},
    ],
)
def test_a_type_beside_null_is_nullable(contents: Any) -> None:
    assert column_of(contents, "a") == pa.field("a", pa.int64())
    decoder = of(with_property(contents, "a"))
    assert [decoder.decode(value) for value in (b'{"a":null}', b'{"a":1}')] == [{"a": None}, {"a": 1}]


@pytest.mark.parametrize(
    "contents",
    [
        True,
        {},
        NULL,
        {"type": ["integer", "string"]},
        {"oneOf": [STRING, {"type": "integer"}]},
        {"anyOf": [with_property(STRING), with_property({"type": "integer"})]},
        {"type": "string", "allOf": [{"type": "integer"}]},
        {"enum": [1, "a"]},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "patternProperties": {"^x": {"type": "integer"}}},
        {"type": "array", "items": [STRING, {"type": "integer"}]},
        {"properties": {"b": STRING}},
    ],
)
def test_what_has_no_single_type_is_text(contents: Any) -> None:
    assert column_of(contents) == TEXT


def test_text_is_the_json_of_the_value_with_all_its_digits() -> None:
    decoder = of(with_property({"type": "array"}, "a"))
    assert decoder.columns == pa.schema([pa.field("a", pa.list_(pa.string()), False)])
    value = (
        b'{"a": ["\xc3\xa9\\"", 1, 1.10, 123456789.12345678901234567890, 1E5, true, {"b": [null, {}]}, null]}'
    )
    assert decoder.decode(value) == {
        "a": [
            '"é\\""',
            "1",
            "1.10",
            "123456789.12345678901234567890",
            "1E+5",
            "true",
            '{"b":[null,{}]}',
            None,
        ]
    }


def test_references_are_followed_in_the_schema_and_to_other_schemas() -> None:
    schema = {
        "type": "object",
        "properties": {
            "item": {"$ref": "item.json"},
            "note": {"$ref": "#/definitions/note"},
            "ship": {"allOf": [{"$ref": "#/definitions/address"}, {"properties": {"zip": STRING}}]},
        },
        "definitions": {
            "note": {"type": ["string", "null"]},
            "address": {"type": "object", "properties": {"city": STRING}, "required": ["city"]},
        },
        "required": ["item", "note"],
    }
    decoder = of(schema, {"item.json": json.dumps(with_property({"type": "integer"}, "a"))})
    ship = pa.struct([pa.field("city", pa.string(), False), pa.field("zip", pa.string())])
    assert decoder.columns == pa.schema(
        [
            pa.field("item", pa.struct([pa.field("a", pa.int64(), False)]), False),
            pa.field("note", pa.string()),
            pa.field("ship", ship),
        ]
    )
    value = {"item": {"a": 1}, "note": "x", "ship": {"city": "c", "zip": "z"}}
    assert decoder.decode(json.dumps(value).encode()) == value


def test_keywords_beside_a_reference_count_from_draft_2019_on() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {"base": with_property(STRING)},
        "$ref": "#/$defs/base",
        "properties": {"b": {"$ref": "#/$defs/base", "description": "..."}},
    }
    assert of(schema).columns == pa.schema([("b", pa.struct([("a", pa.string())])), ("a", pa.string())])


def test_a_schema_within_itself_is_text() -> None:
    decoder = of(with_property({"$ref": "#"}))
    assert decoder.columns == pa.schema([TEXT])
    assert decoder.decode(b'{"a": {"a": {"a": null}}}') == {"a": '{"a":{"a":null}}'}


def test_properties_that_the_schema_does_not_name_are_left_out() -> None:
    assert of(with_property(STRING)).decode(b'{"b": 1, "a": "x"}') == {"a": "x"}


def test_a_missing_property_is_null() -> None:
    assert of(with_property(STRING)).decode(b"{}") == {"a": None}


def item(contents: Any) -> dict[str, Any]:
    return {"type": "array", "items": with_property(contents, "a")}


@pytest.mark.parametrize(
    ("contents", "value", "problem"),
    [
        (STRING, {"a": 5}, "a is 5; it must be a string"),
        (STRING, {"a": None}, "a is null, which the schema does not allow"),
        (STRING, {}, "a is null, which the schema does not allow"),
        ({"type": "integer"}, {"a": 1.5}, "a is 1.5; it must be an integer of 64 bits"),
        ({"type": "integer"}, {"a": True}, "a is true; it must be an integer of 64 bits"),
        ({"type": "integer"}, {"a": 2**63}, "a is 9223372036854775808; it must be an integer of 64 bits"),
        ({"type": "number"}, {"a": "1"}, 'a is "1"; it must be a number'),
        ({"type": "boolean"}, {"a": 1}, "a is 1; it must be true or false"),
        ({"type": "array", "items": STRING}, {"a": {}}, "a is {}; it must be an array"),
        ({"type": "array", "items": STRING}, {"a": ["x", 1]}, "a[1] is 1; it must be a string"),
        (with_property(STRING), {"a": []}, "a is []; it must be an object"),
        (item(STRING), {"a": [{"a": "x"}, {"a": {}}]}, "a[1].a is {}; it must be a string"),
        (STRING, {"a": [1] * 100}, f"a is [{'1,' * 29}1...; it must be a string"),
        (STRING, [], "it is []; it must be an object"),
        (STRING, {"a": "\ud800"}, "surrogates not allowed"),
        ({"type": "integer"}, {"a": "\ud800"}, 'a is "\\ud800"; it must be an integer of 64 bits'),
        ({"type": "string", "format": "date"}, {"a": "\ud800"}, 'a is "\\ud800"; it must be a date'),
        (with_property(STRING), {"a": ["\ud800"]}, 'a is ["\\ud800"]; it must be an object'),
    ],
)
def test_a_value_of_another_type_has_a_reason_with_the_path_and_others_pass(
    contents: Any, value: Any, problem: str
) -> None:
    decoder = of(with_property(contents, "a"))
    rows, reasons = decoded(decoder, pa.array([json.dumps(value).encode(), None]))
    assert (len(rows), rows.null_count) == (2, 2)
    assert str(reasons[0]).startswith("the value is not JSON of R: ")
    assert problem in str(reasons[0])


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"", "it is not valid JSON: Expecting value"),
        (b'{"a":', "it is not valid JSON: Expecting value"),
        (b'{"a": "\xff"}', "it is not UTF-8"),
        (b'{"a": NaN}', "it is not valid JSON: NaN is not a number of JSON"),
        (b"[" * 100_000, "it is not valid JSON: "),
    ],
)
def test_malformed_json_has_a_reason(value: bytes, problem: str) -> None:
    _, reasons = decoded(of(with_property(STRING)), pa.array([value]))
    assert str(reasons[0]).startswith(f"the value is not JSON of R: {problem}")


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (True, "must be of an object with properties"),
        (STRING, "must be of an object with properties"),
        ({"type": "object"}, "must be of an object with properties"),
        ({"oneOf": [with_property(STRING), with_property(NULL)]}, "must be of an object with properties"),
        ({"type": "objekt", "properties": {"a": {}}}, "'objekt' is not valid"),
        (with_property({"$ref": "other.json"}), "'other.json' cannot be resolved"),
        (with_property(STRING, definitions={"x": {"$ref": "#/definitions/x"}}), "points at itself"),
        ({"properties": {"b": {"type": "object", "properties": {"c": {}, "C": {}}}}}, "b.C: the name occurs"),
    ],
)
def test_a_schema_that_cannot_be_columns_is_rejected(schema: Any, problem: str) -> None:
    with pytest.raises(SchemaError) as caught:
        of(schema)
    assert problem in str(caught.value)


def test_a_schema_without_a_title_has_a_label_too() -> None:
    assert of({"properties": {"a": {}}}).label == "JSON of its schema"


FLAT = [
    ({"type": "string"}, st.text(st.characters(exclude_categories=["Cs"]), max_size=8)),
    ({"type": "integer"}, st.integers(-(2**63), 2**63 - 1)),
    ({"type": "number"}, st.floats(allow_nan=False, allow_infinity=False)),
    ({"type": "boolean"}, st.booleans()),
]
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def parts(draw: Any, depth: int = 0) -> tuple[Any, st.SearchStrategy[Any]]:
    """Generate a schema and its values."""
    match draw(st.sampled_from(["flat", "flat", "optional", *(["array", "object"] if depth < 3 else [])])):
        case "optional":
            contents, values = draw(parts(depth + 1))
            return {"anyOf": [contents, NULL]}, st.none() | values
        case "array":
            contents, values = draw(parts(depth + 1))
            return {"type": "array", "items": contents}, st.lists(values, max_size=3)
        case "object":
            return draw(objects(depth + 1))
    return draw(st.sampled_from(FLAT))


@st.composite
def objects(draw: Any, depth: int = 0) -> tuple[Any, st.SearchStrategy[Any]]:
    found = {f"f{index}": draw(parts(depth)) for index in range(draw(st.integers(1, 4)))}
    properties = {name: contents for name, (contents, _) in found.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return schema, st.fixed_dictionaries({name: values for name, (_, values) in found.items()})


@given(st.data())
def test_values_of_any_schema_are_rows(data: st.DataObject) -> None:
    schema, rows = data.draw(objects())
    values = data.draw(st.lists(rows, min_size=1, max_size=4))
    decoder = of(schema)
    found, reasons = decoded(decoder, pa.array([json.dumps(value).encode() for value in values]))
    assert reasons.null_count == len(values), reasons
    assert found.to_pylist() == pa.array(values, row_type(decoder)).to_pylist()


@given(objects(), st.lists(ANY.map(json.dumps).map(str.encode) | st.binary(max_size=40), max_size=5))
def test_any_bytes_are_a_row_or_have_a_reason(schema: tuple[Any, Any], values: list[bytes]) -> None:
    found, reasons = decoded(of(schema[0]), pa.array(values, pa.binary()))
    for row, reason in zip(found.is_valid().to_pylist(), reasons.to_pylist(), strict=True):
        assert row == (reason is None)


@given(ANY)
def test_text_is_json_of_the_same_value(value: Any) -> None:
    found = of(with_property({})).decode(json.dumps({"a": value}).encode())["a"]
    assert (None if found is None else json.loads(found)) == value
