"""Schemas that are parsed once, and those that are not kept."""

import gc
import json
import weakref

from barnabas.registry.parsing import KEPT_CHARACTERS_MAX, parse_schema
from barnabas.registry.schemas import SchemaReference, SchemaText, SchemaType

REFERENCE = SchemaReference("large.json", "large", 1)


def test_a_schema_is_parsed_once() -> None:
    schema = SchemaText(SchemaType.AVRO, '{"type":"string","once":true}')
    parsed = parse_schema(schema, lambda _: None)
    assert parse_schema(schema, lambda _: None) is parsed
    assert parse_schema(schema, lambda _: None, is_new=True) is not parsed


def test_small_schemas_that_refer_to_large_ones_do_not_fill_the_memory() -> None:
    large = SchemaText(SchemaType.JSON, json.dumps({"description": "x" * (KEPT_CHARACTERS_MAX // 4)}))
    parsed = [
        weakref.ref(
            parse_schema(
                SchemaText(SchemaType.JSON, f'{{"$ref":"large.json","n":{number}}}', (REFERENCE,)),
                lambda _: large,
            )
        )
        for number in range(10)
    ]
    gc.collect()
    assert [each() is not None for each in parsed] == [False] * 7 + [True] * 3
