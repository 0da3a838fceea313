"""Schemas of Avro: valid ones have the canonical form of Java's library, others are refused."""

import json
from typing import Any

import pytest

from barnabas.registry.avro.schema import AvroSchema
from barnabas.registry.schemas import InvalidSchema
from support.cpu import cpu_time_limit


def parsed(schema: Any, **dependencies: Any) -> AvroSchema:
    texts = {name: json.dumps(each) for name, each in dependencies.items()}
    return AvroSchema.parse(json.dumps(schema), texts, is_new=True)


def field(kind: Any, **attributes: Any) -> dict[str, Any]:
    return {"name": "f", "type": kind, **attributes}


def record(*fields: dict[str, Any], **attributes: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields), **attributes}


def _record(kind: str, namespace: str = "") -> str:
    """Return the canonical form of a record with a field; `kind` is the field's type and all behind it."""
    return f'{{"type":"record","name":"R"{namespace},"fields":[{{"name":"f","type":{kind}}}]}}'


@pytest.mark.parametrize(
    ("schema", "canonical"),
    [
        ("int", '"int"'),
        ({"type": "int"}, '"int"'),
        ({"type": {"type": "int"}}, '"int"'),
        ({"logicalType": "date", "type": "int"}, '{"type":"int","logicalType":"date"}'),
        ({"items": {"type": "string"}, "type": "array"}, '{"type":"array","items":"string"}'),
        ({"values": "a.E", "type": "map"}, '{"type":"map","values":"a.E"}'),
        (
            {"name": "a.b.R", "x": 1, "doc": "d", "fields": [], "aliases": ["S", "c.T"], "type": "record"},
            '{"type":"record","name":"R","namespace":"a.b","doc":"d","fields":[],"x":1,"aliases":["S","c.T"]}',
        ),
        (
            record(field("int", order="ignore", default=1, doc="d", aliases=["g"], x=2)),
            _record('"int","doc":"d","default":1,"order":"ignore","aliases":["g"],"x":2'),
        ),
        (
            record(field({"type": "enum", "name": "b.X", "symbols": ["A"], "default": "A"}), namespace="a"),
            _record(
                '{"type":"enum","name":"X","namespace":"b","symbols":["A"],"default":"A"}', ',"namespace":"a"'
            ),
        ),
        (record(field(["null", "R"], default=None)), _record('["null","R"],"default":null')),
        ({"type": "fixed", "name": "F", "size": 3}, '{"type":"fixed","name":"F","size":3}'),
        (record(namespace="a-b"), '{"type":"record","name":"R","namespace":"a-b","fields":[]}'),
        (
            record({"name": "größe_٣", "type": "int"}, name="中文"),
            '{"type":"record","name":"中文","fields":[{"name":"größe_٣","type":"int"}]}',
        ),
        (record(field("int", order="IGNORE")), _record('"int","order":"ignore"')),
        *(
            (record(field("double", default=text)), _record(f'"double","default":{canonical}'))
            for text, canonical in (
                ("NaN", '"NaN"'),
                ("-Infinity", '"-Infinity"'),
                ("+Infinity", '"Infinity"'),
                ("1e999", '"Infinity"'),
                (" 1.50f ", "1.5"),
            )
        ),
    ],
)
def test_canonical_forms(schema: Any, canonical: str) -> None:
    imported = {"type": "enum", "name": "a.E", "symbols": []}
    found = parsed(schema, e=imported)
    assert found.canonical == canonical
    assert (
        AvroSchema.parse(canonical, {"e": '{"type":"enum","name":"a.E","symbols":[]}'}, is_new=True).canonical
        == canonical
    )


def test_a_primitive_may_be_written_without_quotes() -> None:
    assert AvroSchema.parse("string", {}, is_new=True).canonical == '"string"'


def test_comments_are_left_out() -> None:
    text = '/* "a" **/ {"type": "int", // "b"\n "x": "http://y /* no */ \\" //" /**/ }'
    assert AvroSchema.parse(text, {}, is_new=True).canonical == (
        '{"type":"int","x":"http://y /* no */ \\" //"}'
    )


@cpu_time_limit()
@pytest.mark.parametrize("text", ['"' + r"\/" * 500_000, "/*" * 500_000, '"/' * 500_000])
def test_texts_like_comments_are_refused(text: str) -> None:
    with pytest.raises(InvalidSchema, match="not JSON"):
        AvroSchema.parse(text, {}, is_new=True)


def test_normalized_forms_sort_the_properties_of_the_author() -> None:
    first, second = parsed({"type": "int", "b": 1, "a": 2}), parsed({"type": "int", "a": 2, "b": 1})
    assert first.canonical != second.canonical
    assert first.normalized == second.normalized


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("nothing", "no type 'nothing'"),
        (7, "is not a type"),
        ({"name": "R"}, "has no type"),
        ({"type": "array"}, "no items"),
        ({"type": "record", "name": "R"}, "no fields"),
        ({"type": "record", "fields": []}, "no name"),
        (record(name="a-b"), "not a valid name"),
        (record(name="²"), "not a valid name"),
        (record(name="\U00020000"), "not a valid name"),
        (record(aliases=["a.b-c"]), "not a valid name"),
        (record(field("double", default="x")), "not of its type"),
        (record(field(["double", "null"], default="NaN")), "not of its type"),
        ({"type": "fixed", "name": "F", "size": 2**31}, "32 bits"),
        (record(name="int"), "primitive type"),
        (record({"name": "f"}), "must have a name and a type"),
        (record(field("int"), field("int")), "field f twice"),
        (record(field("int", default="x")), "not of its type"),
        (record(field("int", default=2**31)), "not of its type"),
        (record(field("int", order="up")), "order"),
        (["int", "int"], "two branches"),
        (["int", ["null"]], "directly in a union"),
        ({"type": "enum", "name": "E"}, "no symbols"),
        ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, "symbol twice"),
        ({"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}, "not a symbol"),
        ({"type": "fixed", "name": "F", "size": "x"}, "size"),
        ({"type": "fixed", "name": "F", "size": 1, "aliases": "x"}, "array of texts"),
        (record(field({"type": "record", "name": "R", "fields": []})), "defined twice"),
    ],
)
def test_other_schemas_are_refused(schema: Any, problem: str) -> None:
    with pytest.raises(InvalidSchema, match=problem):
        parsed(schema)


@pytest.mark.parametrize(
    "text", ["{", "", "not JSON", "[" * 100_000, '{"type":"int","n":NaN}', '{"type":"int","n":1e999}']
)
def test_texts_that_are_not_json_are_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        AvroSchema.parse(text, {}, is_new=True)


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("null", None),
        ("boolean", True),
        ("long", 2**40),
        ("double", 1),
        ("bytes", "\u00ff"),
        ({"type": "array", "items": "int"}, [1, 2]),
        ({"type": "map", "values": "int"}, {"a": 1}),
        (["null", "int"], 3),
        ({"type": "record", "name": "S", "fields": [field("int", default=1)]}, {}),
    ],
)
def test_defaults_of_every_type_are_accepted(kind: Any, default: Any) -> None:
    assert parsed(record(field(kind, default=default)))


def test_stored_schemas_may_have_defaults_of_other_types() -> None:
    assert AvroSchema.parse(json.dumps(record(field("int", default="x"))), {}, is_new=False)


MANY = 50_000


@cpu_time_limit()
def test_many_fields_and_branches_are_parsed() -> None:
    fixed = [{"type": "fixed", "name": f"F{number}", "size": 1} for number in range(MANY)]
    assert len(parsed(fixed).root.branches) == MANY
    fields = [{"name": f"f{number}", "type": "int"} for number in range(MANY)]
    assert len(parsed(record(*fields)).root.fields) == MANY
    with pytest.raises(InvalidSchema, match="has the field f7 twice"):
        parsed(record(*fields, fields[7]))


@cpu_time_limit()
def test_a_default_with_too_many_possible_branches_is_refused() -> None:
    """Each of 30 levels may be of one of two records, and the innermost fits none."""
    default: Any = 5
    for _ in range(30):
        default = {"f": default}
    inner = {"type": "record", "name": "S", "fields": [field(["null", "R", "S"])]}
    outer = record(field(["null", "R", inner]))
    with pytest.raises(InvalidSchema, match="too complex"):
        parsed({**record(field(outer, default=default)), "name": "T"})
