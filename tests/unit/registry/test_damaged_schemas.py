"""Damaged schemas of every type are parsed or refused, and nothing else."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.registry.avro.schema import AvroSchema
from barnabas.registry.codecs.errors import MalformedValue
from barnabas.registry.codecs.values import codec_of
from barnabas.registry.json_schema.schema import JsonSchema
from barnabas.registry.protobuf.schema import ProtobufSchema
from barnabas.registry.schemas import InvalidSchema, SchemaType

PROTO = """syntax = "proto3"; package a.b; import "google/protobuf/any.proto"; option (x).y = { z: 1 };
message M { reserved 5, 7 to max; oneof o { string a = 1 [json_name = "A"]; } map<string, N> m = 2; message N {} }
enum E { Z = 0; } service S { rpc R (stream M) returns (M) { option deprecated = true; } } extend M { int32 q = 9; }
"""
AVRO = (
    '{"type":"record","name":"a.R","doc":"d","fields":[{"name":"f","type":["null",{"type":"enum","name":"E",'
    '"symbols":["A"],"default":"A"}],"default":null,"aliases":["g"]},{"name":"h","type":{"type":"array","items":'
    '{"type":"fixed","name":"F","size":4}}},{"name":"i","type":{"type":"map","values":"R"}}]}'
)
JSON = (
    '{"$id":"http://a/b","definitions":{"d":{"type":["string","null"]}},"properties":{"p":{"$ref":"#/definitions/d"},'
    '"q":{"anyOf":[{"minimum":1},{"enum":[1,"a"]}]}},"required":["p"],"additionalProperties":false,"items":[{},true]}'
)
NUMBERS = ("-1", "0x1", "2147483647", "99999999999", "1.5", "1e999")
PIECES = (*'{}[]":,;=#\\\0ü', *NUMBERS, r"\uD800", r"\UFFFFFFFF", "null", "type", "$ref", "message", "map<")

TYPES: list[tuple[SchemaType, str, Callable[..., Any]]] = [
    (SchemaType.PROTOBUF, PROTO, ProtobufSchema.parse),
    (SchemaType.AVRO, AVRO, AvroSchema.parse),
    (SchemaType.JSON, JSON, JsonSchema.parse),
]


@pytest.mark.parametrize(("kind", "text", "parse"), TYPES, ids=lambda value: str(value)[:8])
@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 8), st.sampled_from(PIECES)), max_size=3),
    st.binary(max_size=12),
)
def test_damaged_schemas_are_refused_as_such(
    kind: SchemaType, text: str, parse: Callable[..., Any], damages: list[tuple[float, int, str]], body: bytes
) -> None:
    for at, length, piece in damages:
        position = int(at * len(text))
        text = text[:position] + piece + text[position + length :]
    try:
        schema = parse(text, {}, is_new=True)
    except InvalidSchema:
        return
    assert isinstance(schema.canonical, str)
    assert isinstance(schema.normalized, str)
    schema.problems_with(schema)
    try:
        json.dumps(codec_of(kind, schema).decode(body))
    except MalformedValue:
        return
