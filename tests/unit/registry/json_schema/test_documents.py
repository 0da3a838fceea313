"""Documents of JSON Schema and their $ref."""

import json
from typing import Any

import pytest

from barnabas.registry.json_schema.schema import JsonSchema
from barnabas.registry.schemas import InvalidSchema
from support.cpu import cpu_time_limit

DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


def parsed(schema: Any, **dependencies: Any) -> JsonSchema:
    return JsonSchema.parse(
        json.dumps(schema), {name: json.dumps(each) for name, each in dependencies.items()}, is_new=True
    )


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/definitions/a", "definitions": {"a": {"type": "string"}}},
        {"$ref": "item.json"},
        {"$id": "https://example.org/order.json", "properties": {"item": {"$ref": "item.json"}}},
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$ref": "#name",
            "$defs": {"a": {"$anchor": "name"}},
        },
        {"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMinimum": True, "minimum": 1},
        {"$schema": "https://unknown.example/schema"},
        {"const": {"$ref": "not a reference"}},
        {"pattern": r"^\p{L}+$", "patternProperties": {r"^\p{Lu}": {"pattern": "^(?=a)"}}},
        {"$schema": DRAFT_2020, "pattern": r"^\p{L}+$"},
    ],
)
def test_valid_documents(schema: Any) -> None:
    document = parsed(schema, **{"item.json": {"type": "string"}})
    assert json.loads(document.canonical) == schema


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"$ref": "missing.json"}, "'missing.json' cannot be resolved"),
        ({"$ref": "#/definitions/a"}, "cannot be resolved"),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, "points at itself"),
        ({"type": "text"}, "'text'"),
        ({"properties": {"a": {"minLength": -1}}}, "minLength"),
        ([], "must be an object or a boolean"),
        ("string", "must be an object or a boolean"),
        ({"pattern": "("}, r"\$.pattern: '\(' is not a 'regex'"),
        ({"patternProperties": {r"(?=\p{L})": {}}}, "is not a 'regex'"),  # neither `re` nor RE2 has both
        ({"$id": 5}, r"\$id must be a text"),
        ({"type": [*range(5_000), "string"]}, "too many values of different types"),
        ({"dependencies": {"a": [*range(5_000), "b"]}}, "too many values of different types"),
    ],
)
def test_other_documents_are_refused(schema: Any, problem: str) -> None:
    with pytest.raises(InvalidSchema, match=problem):
        parsed(schema)


@pytest.mark.parametrize("text", ["{", "[" * 100_000, '{"default":NaN}', '{"default":-1e999}'])
def test_texts_that_are_not_json_are_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        JsonSchema.parse(text, {}, is_new=True)


@cpu_time_limit()
def test_many_references_by_name_are_resolved() -> None:
    names = [f"n{number}" for number in range(5_000)]
    schema = {
        "definitions": {name: {"$id": f"#{name}", "type": "string"} for name in names},
        "properties": {name: {"$ref": f"#{name}"} for name in names},
    }
    assert json.loads(parsed(schema).canonical) == schema
