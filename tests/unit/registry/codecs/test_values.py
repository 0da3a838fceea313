"""Codecs of JSON Schema and Protobuf, and the framing of values."""

import json

import pytest

from barnabas.registry.codecs.errors import MalformedValue
from barnabas.registry.codecs.framing import framed, unframed
from barnabas.registry.codecs.values import codec_of
from barnabas.registry.json_schema.schema import JsonSchema
from barnabas.registry.protobuf.schema import ProtobufSchema
from barnabas.registry.schemas import SchemaType

DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
PROTO = """
syntax = "proto3";
package shop;
message Order { int64 id = 1; message Item { string sku = 1; } }
message Other { repeated string names = 1; map<string, Inner> inner = 2; message Inner { int32 a = 1; } }
"""


def test_a_frame_is_a_zero_byte_and_an_id() -> None:
    assert framed(258, b"x") == b"\0\0\0\1\2x"
    assert unframed(b"\0\0\0\1\2x") == (258, b"x")
    for data in (None, b"", b"\0\0\0\1", b"\1\0\0\1\2x"):
        assert unframed(data) is None


def test_json_is_checked_when_it_is_encoded() -> None:
    schema = JsonSchema.parse(
        '{"properties":{"item":{"$ref":"item.json"}}}', {"item.json": '{"type":"integer"}'}, is_new=True
    )
    codec = codec_of(SchemaType.JSON, schema)
    assert codec.decode(codec.encode({"item": 3})) == {"item": 3}
    assert codec.decode(codec.encode({"name": "\ud83d"})) == {"name": "\ud83d"}
    with pytest.raises(MalformedValue, match="item: 'x' is not of type 'integer'"):
        codec.encode({"item": "x"})
    with pytest.raises(MalformedValue, match="not JSON"):
        codec.decode(b"{")


@pytest.mark.parametrize(
    ("schema", "fitting", "problem"),
    [
        ({"pattern": r"^\p{L}+$"}, "é", ("1", r"'1' does not match")),
        ({"pattern": "^(?=a)"}, "ab", ("b", r"'b' does not match")),
        (
            {"patternProperties": {r"^\p{Lu}": {"type": "integer"}}},
            {"É": 1, "a": ""},
            ({"É": ""}, "'' is not of type 'integer'"),
        ),
        (
            {"patternProperties": {r"^\p{Lu}": {}}, "properties": {"a": {}}, "additionalProperties": False},
            {"É": 1, "a": ""},
            ({"b": 1}, "'b' was unexpected"),
        ),
        (
            {"$schema": DRAFT_2020, "patternProperties": {r"^\p{Lu}": {}}, "unevaluatedProperties": False},
            {"É": 1},
            ({"b": 1}, "'b' was unexpected"),
        ),
    ],
)
def test_patterns_of_json_schema_are_those_of_re_or_re2(
    schema: dict[str, object], fitting: object, problem: tuple[object, str]
) -> None:
    codec = codec_of(SchemaType.JSON, JsonSchema.parse(json.dumps(schema), {}, is_new=True))
    assert codec.decode(codec.encode(fitting)) == fitting
    with pytest.raises(MalformedValue, match=problem[1]):
        codec.encode(problem[0])


def test_a_pattern_that_cannot_be_checked_refuses_the_value() -> None:
    part = {"patternProperties": {r"^\p{Lu}": {}}}
    schema = {"$schema": DRAFT_2020, "allOf": [part], "unevaluatedProperties": False}
    codec = codec_of(SchemaType.JSON, JsonSchema.parse(json.dumps(schema), {}, is_new=True))
    with pytest.raises(MalformedValue, match="a pattern of the schema cannot be checked here"):
        codec.encode({"É": 1})


@pytest.mark.parametrize(
    ("message", "value", "prefix"),
    [
        ("", {"id": "7"}, b"\0"),
        ("Other", {"names": ["a"]}, b"\x02\x02"),
        ("shop.Order.Item", {"sku": "a"}, b"\x04\x00\x00"),
        ("Other.Inner", {"a": 5}, b"\x04\x02\x02"),  # the message of the map is the first one
    ],
)
def test_protobuf_names_its_message_by_indexes(message: str, value: dict[str, object], prefix: bytes) -> None:
    codec = codec_of(SchemaType.PROTOBUF, ProtobufSchema.parse(PROTO, {}, is_new=True), message)
    data = codec.encode(value)
    assert data.startswith(prefix)
    assert codec.decode(data) == value


@pytest.mark.parametrize(
    ("kind", "inner"),
    [
        ("Any", b"\x0a\x09example/T"),  # of an unknown type
        ("Any", b"\x0a\x1bg/google.protobuf.Timestamp\x12\x01\xff"),
        ("Timestamp", b"\x08\xff\xff\xff\xff\xff\xff\xff\x7f"),
        ("Duration", b"\x08\xff\xff\xff\xff\xff\xff\xff\x7f"),
        ("Value", b"\x11\0\0\0\0\0\0\xf0\x7f"),  # infinity
        ("FieldMask", b"\x0a\x01A"),
    ],
)
def test_a_message_that_json_cannot_have_is_refused(kind: str, inner: bytes) -> None:
    files = {"Any": "any", "Value": "struct", "FieldMask": "field_mask"}
    text = f'syntax="proto3"; import "google/protobuf/{files.get(kind, kind.lower())}.proto"; '
    text += f"message M {{ google.protobuf.{kind} a = 1; }}"
    codec = codec_of(SchemaType.PROTOBUF, ProtobufSchema.parse(text, {}, is_new=True))
    with pytest.raises(MalformedValue, match="it is a M that JSON cannot have: "):
        codec.decode(b"\0\x0a" + bytes([len(inner)]) + inner)


def test_a_message_without_a_required_field_is_refused() -> None:
    text = "message M { required string a = 1; optional int32 b = 2; }"
    codec = codec_of(SchemaType.PROTOBUF, ProtobufSchema.parse(text, {}, is_new=True))
    with pytest.raises(MalformedValue, match="missing required fields: a"):
        codec.encode({"b": 1})


def test_values_that_are_not_of_the_message_are_refused() -> None:
    schema = ProtobufSchema.parse(PROTO, {}, is_new=True)
    codec = codec_of(SchemaType.PROTOBUF, schema)
    for data in (b"", b"\x02\x08\x00", b"\x04\x02\x00", b"\x00\x08", b"\xff\xff\xff\xff\xff", b"\xc8\x01"):
        with pytest.raises(MalformedValue):
            codec.decode(data)
    for value in ({"id": "x"}, {"unknown": 1}, 7):
        with pytest.raises(MalformedValue):
            codec.encode(value)
    with pytest.raises(MalformedValue, match="no message Missing; it has Order, Other"):
        codec_of(SchemaType.PROTOBUF, schema, "Missing")
