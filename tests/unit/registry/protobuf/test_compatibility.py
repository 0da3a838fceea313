"""Which schemas of Protobuf can read data of which others."""

import pytest

from barnabas.registry.protobuf.schema import ProtobufSchema


def problems(reader: str, writer: str, imported: tuple[str, str] = ("", "")) -> list[str]:
    """Return errors and paths; schemas are the contents of a message A, or after `file:` of a file."""
    schemas = []
    for text, item in zip((reader, writer), imported, strict=True):
        declarations = text.removeprefix("file:") if text.startswith("file:") else f"message A {{ {text} }}"
        whole = f'syntax = "proto3"; {declarations}'
        dependencies = {"item.proto": f'syntax = "proto3"; {item}'} if item else {}
        schemas.append(ProtobufSchema.parse(whole, dependencies, is_new=True))
    return [f"{each.error} {each.path}" for each in schemas[0].problems_with(schemas[1])]


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        ("string a = 1; string b = 2;", "string a = 1;"),
        ("string a = 1;", "string a = 1; string b = 2;"),
        ("string renamed = 1;", "string a = 1;"),
        ("int64 a = 1;", "int32 a = 1;"),
        ("bool a = 1;", "uint64 a = 1;"),
        ("enum E { X = 0; } E a = 1;", "int32 a = 1;"),
        ("bytes a = 1;", "string a = 1;"),
        ("repeated string a = 1;", "string a = 1;"),
        ("sfixed32 a = 1;", "fixed32 a = 1;"),
        ("oneof x { string a = 1; }", "string a = 1;"),
        ("oneof x { string a = 1; string b = 2; }", "oneof x { string a = 1; }"),
        ("string a = 1;", "oneof x { string a = 1; }"),
        ("optional string a = 1;", "string a = 1;"),
        ("map<string, int64> a = 1;", "map<string, int32> a = 1;"),
        ("message B {} B b = 1;", "message B {} B b = 1;"),
        ("message B { A a = 1; } B b = 1;", "message B { A a = 1; } B b = 1;"),
        ("file:message A {} message B {}", "file:message A {}"),
        ("file:message B {} message A {}", "file:message A {} message B {}"),
        ("file:message A {}", "file:message A {} enum E { X = 0; }"),
        ("file:package p; message A { A a = 1; }", "file:package p; message A { A a = 1; }"),
        ("repeated B b = 1; message B {}", "B b = 1; message B {}"),
    ],
)
def test_compatible(reader: str, writer: str) -> None:
    assert problems(reader, writer) == []


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        ("string a = 1;", "int32 a = 1;", "FIELD_SCALAR_KIND_CHANGED #/A/1"),
        ("sint32 a = 1;", "int32 a = 1;", "FIELD_SCALAR_KIND_CHANGED #/A/1"),
        ("repeated int32 a = 1;", "int32 a = 1;", "FIELD_NUMERIC_LABEL_CHANGED #/A/1"),
        ("message B {} B a = 1;", "string a = 1;", "FIELD_KIND_CHANGED #/A/1"),
        ("map<string, string> a = 1;", "map<string, int32> a = 1;", "FIELD_SCALAR_KIND_CHANGED #/A/1/value"),
        (
            "message B {} message C {} B a = 1;",
            "message B {} message C {} C a = 1;",
            "FIELD_NAMED_TYPE_CHANGED #/A/1",
        ),
        (
            "message B { string x = 1; } B b = 1;",
            "message B { int32 x = 1; } B b = 1;",
            "FIELD_SCALAR_KIND_CHANGED #/A/B/1",
        ),
        (
            "oneof x { string a = 1; string b = 2; }",
            "string a = 1; string b = 2;",
            "MULTIPLE_FIELDS_MOVED_TO_ONEOF #/A/x",
        ),
        (
            "oneof x { string a = 1; string b = 2; }",
            "oneof x { string a = 1; } string b = 2;",
            "FIELD_MOVED_TO_EXISTING_ONEOF #/A/x",
        ),
        ("oneof x { string a = 1; }", "oneof x { string a = 1; string b = 2; }", "ONEOF_FIELD_REMOVED #/A/x"),
        ("file:message B {}", "file:message A {}", "MESSAGE_REMOVED #/A"),
        ("file:package p; message A {}", "file:message A {}", "PACKAGE_CHANGED #/"),
    ],
)
def test_incompatible(reader: str, writer: str, expected: str) -> None:
    assert problems(reader, writer) == [expected]


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        ("required string a = 1;", "", ["REQUIRED_FIELD_ADDED"]),
        ("", "required string a = 1;", ["REQUIRED_FIELD_REMOVED"]),
        ("required string a = 1;", "optional string a = 1;", ["REQUIRED_FIELD_ADDED"]),
        ("optional string a = 1;", "required string a = 1;", []),
        ("required B a = 1; message B {}", "optional B a = 1; message B {}", ["REQUIRED_FIELD_ADDED"]),
        ("required int32 a = 1;", "oneof x { int32 a = 1; }", ["REQUIRED_FIELD_ADDED"]),
        ("oneof x { int32 a = 1; }", "required int32 a = 1;", []),
        ("optional int32 a = 1;", "required int32 a = 1;", ["FIELD_NUMERIC_LABEL_CHANGED"]),
    ],
)
def test_required_fields_of_proto2_may_not_change(reader: str, writer: str, expected: list[str]) -> None:
    schemas = [ProtobufSchema.parse(f"message A {{ {text} }}", {}, is_new=True) for text in (reader, writer)]
    assert [each.error for each in schemas[0].problems_with(schemas[1])] == expected


def test_imported_messages_are_compared_too() -> None:
    text = 'file:import "item.proto"; message A { Item item = 1; }'
    items = ("message Item { string a = 1; }", "message Item { int32 a = 1; }")
    assert problems(text, text, imported=items) == ["FIELD_SCALAR_KIND_CHANGED #/A/1/1"]
    assert problems(text, text, imported=(items[0], items[0])) == []
