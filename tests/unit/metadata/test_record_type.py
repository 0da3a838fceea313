import json

import pytest

from barnabas.metadata.record_type import RecordType, Table
from barnabas.metadata.store import NEVER

NUMBERS: RecordType[int] = RecordType("numbers", int, int)
SETS: RecordType[frozenset[str]] = RecordType("sets", sorted, frozenset)


def test_a_put_is_compact_json_under_the_record_types_name() -> None:
    change = SETS.put("x/y", frozenset({"b", "a"}))
    assert (change.key, change.value) == ("sets/x/y", b'["a","b"]')
    assert SETS.decode(change.value) == {"a", "b"}


def test_equal_values_have_equal_bytes() -> None:
    plain: RecordType[dict[str, int]] = RecordType("plain", dict, dict)
    assert plain.put("k", {"a": 1, "b": 2}) == plain.put("k", {"b": 2, "a": 1})


def test_a_removal_has_no_value() -> None:
    assert NUMBERS.remove("k") == ("numbers/k", None)


def test_values_that_are_not_json_raise_an_error() -> None:
    with pytest.raises(json.JSONDecodeError):
        NUMBERS.decode(b"{")


def test_a_table_remembers_the_revision_of_each_row() -> None:
    table: Table[int] = Table()
    table = table.replay(3, {"a": 1, "b": 2})
    table = table.replay(5, {"b": 7, "c": 3})
    assert dict(table) == {"a": 1, "b": 7, "c": 3}
    assert [table.revision(key) for key in "abcd"] == [3, 5, 5, NEVER]


def test_removing_a_row_removes_its_revision() -> None:
    table: Table[int] = Table().replay(1, {"a": 1}).replay(2, {"a": None})
    assert "a" not in table
    assert table.revision("a") == NEVER


def test_removing_a_missing_row_changes_nothing() -> None:
    assert dict(Table().replay(1, {"a": 1}).replay(2, {"b": None})) == {"a": 1}


def test_a_table_is_immutable() -> None:
    before: Table[int] = Table().replay(1, {"a": 1})
    before.replay(2, {"a": 2, "b": 3})
    assert dict(before) == {"a": 1}
    assert before.revision("a") == 1


def test_a_table_is_a_mapping() -> None:
    table: Table[int] = Table().replay(1, {"a": 1, "b": 2})
    assert (len(table), list(table), table["b"], table.get("z")) == (2, ["a", "b"], 2, None)
    assert list(table.values()) == [1, 2]
