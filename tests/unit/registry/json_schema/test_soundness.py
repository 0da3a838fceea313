"""Random pairs of schemas: if they are compatible, the reader accepts every value that the writer accepts."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from barnabas.registry.json_schema.schema import JsonSchema

SCALARS: list[Any] = [None, True, False, -3, 0, 1, 2, 5, 1.5, 4.5, "", "a", "ab", "abc"]
ARRAYS: list[Any] = [[], [1], ["a"], [1, 1], [1, 2], ["a", 1], [1, "a", None], [[1]]]
OBJECTS: list[Any] = [
    *({name: value} for name in "abc" for value in (1, "a", 1.5, None, [1], {"a": 1})),
    {},
    {"a": 1, "b": 2},
    {"a": "x", "b": 1},
    {"a": 1, "c": "x"},
    {"a": 1, "b": 2, "c": 3},
]
VALUES = [*SCALARS, *ARRAYS, *OBJECTS]
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
SMALL = st.integers(0, 3)


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return schemas with some keywords, whose subschemas are of `inner`."""
    optional = {
        "type": st.sampled_from(TYPES)
        | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
        "enum": st.lists(st.sampled_from(SCALARS), min_size=1, max_size=4),
        "const": st.sampled_from(SCALARS),
        "minimum": SMALL,
        "exclusiveMaximum": SMALL,
        "multipleOf": st.sampled_from([0.5, 1, 1.5, 2]),
        "minLength": SMALL,
        "maxLength": SMALL,
        "pattern": st.sampled_from(["a", "b$"]),
        "minItems": SMALL,
        "maxItems": SMALL,
        "uniqueItems": st.booleans(),
        "items": inner | st.lists(inner, min_size=1, max_size=2),
        "contains": inner,
        "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
        "additionalProperties": inner,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b|c"]), inner, max_size=1),
        "propertyNames": inner,
        "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
        "minProperties": SMALL,
        "maxProperties": SMALL,
        "dependencies": st.dictionaries(st.sampled_from("abc"), inner | st.just(["b"]), max_size=1),
        "allOf": st.lists(inner, min_size=1, max_size=2),
        "anyOf": st.lists(inner, min_size=1, max_size=2),
        "not": inner,
        "if": inner,
        "then": inner,
    }
    names = st.lists(st.sampled_from(sorted(optional)), max_size=3, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: optional[name] for name in chosen}))


SCHEMAS = st.recursive(st.booleans() | st.builds(dict), keywords, max_leaves=4)


@settings(max_examples=200)
@given(SCHEMAS, SCHEMAS)
def test_a_compatible_reader_accepts_all_values_of_the_writer(reader: Any, writer: Any) -> None:
    check(reader, writer)


@settings(max_examples=200)
@given(keywords(SCHEMAS), st.data())
def test_similar_schemas_are_compared_soundly(schema: dict[str, Any], data: st.DataObject) -> None:
    """Such pairs are often compatible."""
    other = dict(schema)
    if other:
        del other[data.draw(st.sampled_from(sorted(other)))]
    other |= data.draw(st.just({}) | keywords(SCHEMAS))
    check(schema, other)
    check(other, schema)


def check(reader: Any, writer: Any) -> None:
    schemas = [JsonSchema.parse(json.dumps(each), {}, is_new=True) for each in (reader, writer)]
    if not schemas[0].problems_with(schemas[1]):
        accepts, accepted = Draft7Validator(reader), Draft7Validator(writer)
        assert [value for value in VALUES if accepted.is_valid(value) and not accepts.is_valid(value)] == []
