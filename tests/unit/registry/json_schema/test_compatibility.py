"""Which schemas of JSON Schema accept the values of which others."""

import json
from typing import Any

import pytest

from barnabas.registry.json_schema.schema import JsonSchema
from support.cpu import cpu_time_limit


def problems(reader: Any, writer: Any, **dependencies: Any) -> list[str]:
    """Return errors and paths."""
    texts = {name: json.dumps(each) for name, each in dependencies.items()}
    schemas = [JsonSchema.parse(json.dumps(each), texts, is_new=True) for each in (reader, writer)]
    return [f"{each.error} {each.path}" for each in schemas[0].problems_with(schemas[1])]


INTEGER, NUMBER, STRING = {"type": "integer"}, {"type": "number"}, {"type": "string"}


def obj(**attributes: Any) -> dict[str, Any]:
    return {"type": "object", **attributes}


def closed(*required: str, **properties: Any) -> dict[str, Any]:
    return obj(
        properties=properties,
        additionalProperties=False,
        **({"required": list(required)} if required else {}),
    )


def opened(*required: str, **properties: Any) -> dict[str, Any]:
    return obj(properties=properties, **({"required": list(required)} if required else {}))


TREE = obj(properties={"next": {"$ref": "#"}, "n": INTEGER})

#: What may become what.
COMPATIBLE: list[tuple[Any, Any]] = [
    ({}, STRING),
    (True, STRING),
    (STRING, False),
    (NUMBER, INTEGER),
    ({"type": ["string", "null"]}, STRING),
    ({"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 4}),
    ({"type": "string", "minLength": 1}, {"type": "string", "minLength": 2}),
    (STRING, {"type": "string", "pattern": "a+"}),
    ({"type": "integer", "minimum": 1}, {"type": "integer", "exclusiveMinimum": 1}),
    ({"type": "integer", "maximum": 5}, {"type": "integer", "maximum": 4}),
    ({"type": "number", "multipleOf": 0.5}, {"type": "number", "multipleOf": 1.5}),
    ({"type": "number", "multipleOf": 0.1}, {"type": "number", "multipleOf": 0.3}),
    ({"type": "number", "multipleOf": 0.01}, {"type": "number", "multipleOf": 1e30}),
    ({"enum": ["a", "b", 1]}, {"enum": ["b"]}),
    ({"enum": ["a", "b"]}, {"const": "a"}),
    (STRING, {"enum": ["a"]}),
    ({"type": "array", "items": NUMBER}, {"type": "array", "items": INTEGER}),
    ({"type": "array", "maxItems": 3}, {"type": "array", "maxItems": 2, "uniqueItems": True}),
    ({"items": [INTEGER], "additionalItems": True}, {"items": [INTEGER, STRING]}),
    (opened(a=STRING), opened(a=STRING, b=INTEGER)),
    (opened(a=STRING, b={}), opened(a=STRING)),
    (closed(a=STRING, b=INTEGER), closed(a=STRING)),
    (closed("b", b={"type": "integer", "default": 0}), closed()),
    (opened(a=STRING), closed(a=STRING, b=INTEGER)),
    (opened(), opened("a", a=STRING)),
    (obj(properties={"a": STRING}, additionalProperties=STRING), obj(additionalProperties=STRING)),
    (obj(patternProperties={"^a": STRING}), obj(patternProperties={"^a": STRING}, maxProperties=3)),
    (
        obj(properties={"ab": STRING}, patternProperties={"^a": {"maxLength": 5}, "b$": {"maxLength": 4}}),
        obj(properties={"ab": STRING}, patternProperties={"^a": {"maxLength": 3}, "b$": {"maxLength": 4}}),
    ),
    (
        {**closed(), "patternProperties": {"^S_": STRING, "^I_": INTEGER}},
        {**closed(), "patternProperties": {"^S_": STRING}},
    ),
    (
        obj(properties={"next": {"$ref": "#"}}, patternProperties={"^n": {"maxProperties": 3}}),
        obj(properties={"next": {"$ref": "#"}}, patternProperties={"^n": {"maxProperties": 2}}),
    ),
    (obj(dependencies={"a": ["b"]}), obj(dependencies={"a": ["b", "c"]})),
    ({"oneOf": [STRING, INTEGER]}, STRING),
    ({"anyOf": [STRING, INTEGER]}, {"oneOf": [INTEGER, STRING]}),
    ({"type": ["string", "integer"]}, {"oneOf": [INTEGER, STRING]}),
    ({"oneOf": [STRING, INTEGER]}, {"type": ["string", "integer"]}),
    ({"allOf": [STRING]}, {"allOf": [STRING, {"maxLength": 3}]}),
    ({"allOf": [STRING, {"maxLength": 4}]}, {"type": "string", "maxLength": 3}),
    ({"not": {"type": "string", "maxLength": 2}}, {"not": STRING}),
    (TREE, TREE),
    ({"if": STRING, "then": {"maxLength": 3}}, {"if": STRING, "then": {"maxLength": 3}}),
    ({"description": "x", "title": "y"}, STRING),
]

INCOMPATIBLE: list[tuple[Any, Any, str]] = [
    (STRING, {}, "TYPE_NARROWED /type"),
    (False, STRING, "TYPE_CHANGED "),
    (INTEGER, NUMBER, "TYPE_NARROWED /type"),
    (STRING, {"type": ["string", "null"]}, "TYPE_NARROWED /type"),
    (
        {"type": "string", "maxLength": 4},
        {"type": "string", "maxLength": 5},
        "MAX_LENGTH_DECREASED /maxLength",
    ),
    ({"type": "string", "maxLength": 4}, STRING, "MAX_LENGTH_DECREASED /maxLength"),
    ({"type": "string", "minLength": 1}, STRING, "MIN_LENGTH_INCREASED /minLength"),
    ({"type": "string", "pattern": "a"}, STRING, "PATTERN_CHANGED /pattern"),
    (
        {"type": "integer", "exclusiveMinimum": 1},
        {"type": "integer", "minimum": 1},
        "MINIMUM_INCREASED /minimum",
    ),
    ({"type": "integer", "maximum": 4}, INTEGER, "MAXIMUM_DECREASED /maximum"),
    ({"type": "integer", "multipleOf": 2}, INTEGER, "MULTIPLE_OF_CHANGED /multipleOf"),
    ({"enum": ["b"]}, {"enum": ["a", "b"]}, "ENUM_ARRAY_NARROWED /enum"),
    ({"enum": ["b"]}, STRING, "ENUM_ARRAY_NARROWED /enum"),
    ({"type": "array", "items": INTEGER}, {"type": "array"}, "TYPE_NARROWED /items/type"),
    ({"type": "array", "uniqueItems": True}, {"type": "array"}, "UNIQUE_ITEMS_ADDED /uniqueItems"),
    (opened(a=STRING, b=INTEGER), opened(a=STRING), "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL /properties/b"),
    (
        closed(a=STRING),
        closed(a=STRING, b=INTEGER),
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL /properties/b",
    ),
    (closed("b", b=INTEGER), closed(), "REQUIRED_ATTRIBUTE_ADDED /required/b"),
    (opened("a", a=STRING), opened(a=STRING), "REQUIRED_ATTRIBUTE_ADDED /required/a"),
    (opened(a=STRING), opened(a=INTEGER), "TYPE_NARROWED /properties/a/type"),
    (closed(a=STRING), opened(a=STRING), "TYPE_CHANGED /additionalProperties"),
    (
        obj(additionalProperties=STRING),
        obj(properties={"a": INTEGER}, additionalProperties=STRING),
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL /properties/a",
    ),
    (
        {**closed(ab=STRING), "patternProperties": {"^a": INTEGER}},
        closed(ab=STRING),
        "TYPE_NARROWED /properties/ab/allOf/1/type",
    ),
    *(
        (
            {**closed(), "patternProperties": {"^S_": STRING, added: INTEGER}},
            {**closed(), "patternProperties": {"^S_": STRING}},
            f"TYPE_NARROWED /patternProperties/{added}/type",
        )
        for added in ("_id$", "^S_?", "^S", "^SA*", "^I_|b")
    ),
    (
        {**closed(ab=STRING), "patternProperties": {"^a": STRING, "b$": {"maxLength": 3}}},
        {**closed(ab=STRING), "patternProperties": {"^a": STRING}},
        "MAX_LENGTH_DECREASED /properties/ab/allOf/2/maxLength",
    ),
    (
        obj(dependencies={"a": ["b", "c"]}),
        obj(dependencies={"a": ["b"]}),
        "DEPENDENCY_ARRAY_EXTENDED /dependencies/a",
    ),
    (obj(minProperties=1), obj(), "MIN_PROPERTIES_INCREASED /minProperties"),
    (STRING, {"oneOf": [STRING, INTEGER]}, "TYPE_NARROWED /type"),
    ({"oneOf": [STRING]}, {"oneOf": [STRING, INTEGER]}, "SUM_TYPE_NARROWED "),
    ({"allOf": [STRING, {"maxLength": 3}]}, {"allOf": [STRING]}, "MAX_LENGTH_DECREASED /allOf/1/maxLength"),
    ({"not": STRING}, {}, "NOT_TYPE_EXTENDED /not"),
    ({"if": STRING, "then": {"maxLength": 3}}, {}, "IF_CHANGED /if"),
    (obj(properties={"next": {"$ref": "#"}, "n": STRING}), TREE, "TYPE_NARROWED /properties/n/type"),
]


@pytest.mark.parametrize(("reader", "writer"), COMPATIBLE)
def test_compatible(reader: Any, writer: Any) -> None:
    assert problems(reader, writer) == []


@pytest.mark.parametrize(("reader", "writer", "expected"), INCOMPATIBLE)
def test_incompatible(reader: Any, writer: Any, expected: str) -> None:
    assert expected in problems(reader, writer)


@pytest.mark.parametrize("schema", [each for pair in COMPATIBLE for each in pair])
def test_every_schema_accepts_its_own_values(schema: Any) -> None:
    assert problems(schema, schema) == []


@pytest.mark.parametrize("part", [{"type": 5}, {"properties": 5}, {"items": 5}, {"$ref": 5}])
def test_what_no_metaschema_has_checked_is_incompatible(part: Any) -> None:
    """A $ref may point at any part of a document."""
    schema = {"$ref": "#/part", "part": part}
    assert problems(schema, {**schema, "title": "t"}) == ["INVALID_SCHEMA "]


def test_references_are_followed_into_other_documents() -> None:
    old = opened(a={"$ref": "item.json#/definitions/Name"})
    item = {"definitions": {"Name": STRING}}
    assert problems(opened(a=STRING), old, **{"item.json": item}) == []
    assert problems(opened(a=INTEGER), old, **{"item.json": item}) == ["TYPE_NARROWED /properties/a/type"]


def test_a_tuple_of_draft_2020_is_compared_item_by_item() -> None:
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "array"}
    old, new = ({**dialect, "prefixItems": [kind], "items": STRING} for kind in (INTEGER, NUMBER))
    assert problems(new, old) == []
    assert problems(old, new) == ["TYPE_NARROWED /items/0/type"]


def test_keywords_beside_a_reference_count_since_draft_2019() -> None:
    text = {"$defs": {"s": {"type": "string", "maxLength": 5}}, "properties": {"a": {"$ref": "#/$defs/s"}}}
    strict = {**text, "properties": {"a": {"$ref": "#/$defs/s", "maxLength": 3}}}
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    assert problems(strict, text) == []  # draft 7 ignores them
    assert problems({**strict, **dialect}, {**text, **dialect}) == [
        "MAX_LENGTH_DECREASED /properties/a/maxLength"
    ]
    assert problems({**text, **dialect}, {**strict, **dialect}) == []


def test_an_expensive_comparison_ends() -> None:
    def nested(depth: int, leaf: Any) -> Any:
        for _ in range(depth):
            leaf = {
                "anyOf": [{"type": "array", "items": leaf}, {"type": "array", "items": leaf, "maxItems": 9}]
            }
        return leaf

    assert problems(nested(12, INTEGER), nested(12, NUMBER)) != []


@cpu_time_limit()
def test_a_pattern_takes_no_longer_than_its_names() -> None:
    names = {f"{'a' * 60}b{number}": INTEGER for number in range(9)}
    assert problems(obj(patternProperties={"^(a+)+$": STRING}), closed(**names)) == []


@cpu_time_limit()
def test_many_patterns_and_names_end() -> None:
    patterns = {f"^p{number}$": STRING for number in range(5_000)}
    found = problems(obj(patternProperties=patterns), opened(**{f"n{number}": {} for number in range(5_000)}))
    assert found == ["TOO_COMPLEX "]
    others = {f"^q{number}$": STRING for number in range(5_000)}
    found = problems(
        {**closed(), "patternProperties": patterns | others}, {**closed(), "patternProperties": patterns}
    )
    assert found == ["TOO_COMPLEX "]


@cpu_time_limit()
def test_many_required_properties_are_compared() -> None:
    names = [f"n{number}" for number in range(100_000)]
    assert problems({"required": names}, {"required": names[::-1]}) == []
