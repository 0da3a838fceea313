"""Which schemas of Avro can read data of which others."""

import json
from typing import Any

import pytest

from barnabas.registry.avro.schema import AvroSchema
from support.cpu import cpu_time_limit


def problems(reader: Any, writer: Any) -> list[str]:
    """Return errors and paths."""
    schemas = [AvroSchema.parse(json.dumps(each), {}, is_new=True) for each in (reader, writer)]
    return [f"{each.error} {each.path}" for each in schemas[0].problems_with(schemas[1])]


def record(*fields: Any, name: str = "R", **attributes: Any) -> dict[str, Any]:
    parts = [{"name": each, "type": "int"} if isinstance(each, str) else each for each in fields]
    return {"type": "record", "name": name, "fields": parts, **attributes}


def enum(*symbols: str, **attributes: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **attributes}


RECURSIVE = record({"name": "next", "type": ["null", "R"]}, "a")


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        ("long", "int"),
        ("float", "long"),
        ("double", "float"),
        ("string", "bytes"),
        ("bytes", "string"),
        (["int", "null"], "int"),
        (["long", "null"], "int"),
        ("long", ["int", "long"]),
        (["null", "string", "long"], ["int", "null"]),
        ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}),
        ({"type": "map", "values": "long"}, {"type": "map", "values": "int"}),
        (record("a"), record("a", "b")),
        (record("a", {"name": "b", "type": "int", "default": 0}), record("a")),
        (record({"name": "b", "type": "int", "aliases": ["a"]}), record("a")),
        (record("a", name="x.R"), record("a", name="y.R")),
        (record("a", name="S", aliases=["R"]), record("a")),
        (enum("A", "B"), enum("A")),
        (enum("A", default="A"), enum("A", "B")),
        (RECURSIVE, RECURSIVE),
    ],
)
def test_compatible(reader: Any, writer: Any) -> None:
    assert problems(reader, writer) == []


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        ("int", "long", "TYPE_MISMATCH "),
        ("string", "int", "TYPE_MISMATCH "),
        ("int", ["int", "null"], "TYPE_MISMATCH "),
        (["int", "null"], "string", "MISSING_UNION_BRANCH "),
        (["int"], ["int", "string"], "MISSING_UNION_BRANCH /1"),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "string"}, "TYPE_MISMATCH /items"),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "string"}, "TYPE_MISMATCH /values"),
        (record("a", "b"), record("a"), "READER_FIELD_MISSING_DEFAULT_VALUE /fields/1"),
        (record({"name": "a", "type": "string"}), record("a"), "TYPE_MISMATCH /fields/0/type"),
        (record("a"), record("a", name="S"), "NAME_MISMATCH /name"),
        (enum("A"), enum("A", "B"), "MISSING_ENUM_SYMBOLS /symbols"),
        (
            {"type": "fixed", "name": "F", "size": 2},
            {"type": "fixed", "name": "F", "size": 3},
            "FIXED_SIZE_MISMATCH /size",
        ),
        (
            record({"name": "next", "type": ["null", "R"]}, "a", "b"),
            RECURSIVE,
            "READER_FIELD_MISSING_DEFAULT_VALUE /fields/2",
        ),
    ],
)
def test_incompatible(reader: Any, writer: Any, expected: str) -> None:
    assert problems(reader, writer)[-1] == expected


def chain(leaf: Any) -> dict[str, Any]:
    """Return a record with 40 levels of records, each of which is in the next one twice."""
    found: dict[str, Any] = record({"name": "leaf", "type": leaf}, name="R0")
    for level in range(1, 41):
        twice = ({"name": "a", "type": found}, {"name": "b", "type": f"R{level - 1}"})
        found = record(*twice, name=f"R{level}")
    return found


@cpu_time_limit()
def test_records_are_compared_once() -> None:
    assert problems(chain("long"), chain("int")) == []
    found = problems(chain("int"), chain("long"))
    assert set(found) == {f"TYPE_MISMATCH {'/fields/0/type' * 41}"}


def test_a_pair_is_compared_again_if_it_relied_on_one_that_is_not_compatible() -> None:
    """Whether S can be read depends on the R around it, which cannot be read."""
    inner = record({"name": "back", "type": ["null", "R"]}, name="S")
    outer = {"type": ["string", record({"name": "s", "type": inner}, "a", "b")]}
    written = record({"name": "s", "type": inner}, "a")
    assert problems(
        record({"name": "r", "type": outer["type"]}, {"name": "s", "type": "S"}, name="T"),
        record({"name": "r", "type": written}, {"name": "s", "type": "S"}, name="T"),
    ) == ["MISSING_UNION_BRANCH /fields/0/type", "MISSING_UNION_BRANCH /fields/1/type/fields/0/type/1"]


@cpu_time_limit()
def test_many_branches_end() -> None:
    branches = [record(name=f"R{number}") for number in range(2_000)]
    assert problems(branches, branches[::-1]) == ["TOO_COMPLEX "]


@cpu_time_limit()
def test_many_symbols_and_fields_are_compared() -> None:
    names = [f"n{number}" for number in range(50_000)]
    assert problems(enum(*names), enum(*names[::-1])) == []
    assert problems(record(*names), record(*names[::-1])) == []
