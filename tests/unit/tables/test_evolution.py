"""Columns of tables only grow; rows of any schema fit, or it is said why not."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.tables.evolution import Merged, aligned, merged_schema, storable

TEXTS = pa.list_(pa.field("element", pa.string()))


def merged(table: dict[str, pa.DataType], rows: dict[str, pa.DataType]) -> Merged:
    return merged_schema(pa.schema(list(table.items())), pa.schema(list(rows.items())))


def test_new_columns_and_nested_fields_are_added() -> None:
    table = {"id": pa.int64(), "to": pa.struct([("city", pa.string())])}
    rows = {"to": pa.struct([("zip", pa.int32())]), "tags": TEXTS, "id": pa.int64()}
    expected = {
        "id": pa.int64(),
        "to": pa.struct([("city", pa.string()), ("zip", pa.int32())]),
        "tags": TEXTS,
    }
    assert merged(table, rows) == Merged(pa.schema(list(expected.items())), {})


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        (pa.int64(), pa.int32()),
        (pa.float64(), pa.float32()),
        (pa.decimal128(10, 2), pa.decimal128(8, 1)),
        (TEXTS, pa.list_(pa.field("item", pa.large_string()))),
        (pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int32())),
        (pa.int64(), pa.duration("us")),
    ],
    ids=str,
)
def test_a_column_takes_values_that_lose_nothing(table: pa.DataType, rows: pa.DataType) -> None:
    assert merged({"c": table}, {"c": rows}) == Merged(pa.schema([("c", table)]), {})


@pytest.mark.parametrize(
    ("table", "rows", "reason"),
    [
        (pa.int32(), pa.int64(), "c is int64; the table's column is int32"),
        (pa.string(), pa.int64(), "c is int64; the table's column is string"),
        (
            pa.decimal128(8, 2),
            pa.decimal128(8, 3),
            "c is decimal128(8, 3); the table's column is decimal128(8, 2)",
        ),
        (
            pa.struct([("a", TEXTS)]),
            pa.struct([("a", pa.list_(pa.int32()))]),
            "c.a[] is int32; the table's column is string",
        ),
    ],
    ids=str,
)
def test_a_column_that_does_not_fit_is_named_with_its_path(
    table: pa.DataType, rows: pa.DataType, reason: str
) -> None:
    assert merged({"c": table}, {"c": rows, "d": pa.int32()}) == Merged(
        pa.schema([("c", table), ("d", pa.int32())]), {"c": reason}
    )


def test_names_that_differ_only_in_case_do_not_fit() -> None:
    found = merged({"Id": pa.int64()}, {"id": pa.int64()})
    assert found.mismatches == {"id": "the table has a column Id; names must differ in more than case"}
    assert found.schema.names == ["Id"]


A_B = pa.struct([("b", pa.string())])
OF_A_B = pa.list_(pa.field("element", A_B))


@pytest.mark.parametrize(
    ("table", "rows", "refused"),
    [
        ({}, {"a": A_B, "a.b": pa.int32()}, "a.b"),
        ({}, {"a.b": pa.int32(), "a": A_B}, "a.b"),
        ({"a.b": pa.int32()}, {"a": A_B}, "a"),
        ({"a": A_B}, {"a.b": pa.int32()}, "a.b"),
        ({"a": OF_A_B}, {"a.b": pa.int32()}, "a.b"),
        ({"a": OF_A_B}, {"a.element": pa.int32()}, "a.element"),
        ({"a": pa.map_(pa.string(), A_B)}, {"a.value.b": pa.int32()}, "a.value.b"),
        ({}, {"c": pa.struct([("a", A_B), ("a.b", pa.int32())])}, "c"),
        ({"c": pa.struct([("a", A_B)])}, {"c": pa.struct([("a.b", pa.int32())])}, "c"),
    ],
)
def test_a_name_with_a_dot_that_is_the_path_of_another_column_does_not_fit(
    table: dict[str, pa.DataType], rows: dict[str, pa.DataType], refused: str
) -> None:
    """PyIceberg would refuse the columns, and the table would stop."""
    found = merged(table, {**rows, "id": pa.int64()})
    assert list(found.mismatches) == [refused]
    assert "another column has the path" in found.mismatches[refused]
    taken = {name: kind for name, kind in rows.items() if name != refused}
    assert found.schema == pa.schema(list({**table, **taken, "id": pa.int64()}.items()))


def test_names_with_dots_that_are_no_paths_are_taken() -> None:
    table = {"a.b": pa.int32(), "c": pa.struct([("element.x", TEXTS), ("x", TEXTS)])}
    rows = {"a.c": pa.int32(), "d": pa.list_(pa.field("element", pa.struct([("element", pa.string())])))}
    assert merged(table, rows) == Merged(pa.schema(list((table | rows).items())), {})


def test_a_table_that_has_such_columns_stays_as_it_is() -> None:
    """Delta takes them."""
    table = {"a": A_B, "a.b": pa.int32()}
    assert merged(table, {**table, "id": pa.int64()}).mismatches == {}


FIELDS = st.sampled_from(["a", "b", "c"])
FLAT = st.sampled_from([pa.int32(), pa.int64(), pa.string(), pa.binary(), pa.float32(), pa.bool_()])


def nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.one_of(
        st.dictionaries(FIELDS, inner, min_size=1).map(lambda fields: pa.struct(list(fields.items()))),
        inner.map(pa.list_),
        inner.map(lambda kind: pa.map_(pa.string(), kind)),
    )


SCHEMAS = st.dictionaries(FIELDS, st.recursive(FLAT, nested, max_leaves=5), min_size=1).map(
    lambda fields: pa.schema(list(fields.items()))
)


def value_of(kind: pa.DataType, number: int) -> Any:
    """Return a value of a type; some are null."""
    if number % 4 == 3:
        return None
    if pa.types.is_struct(kind):
        return {field.name: value_of(field.type, number + 1) for field in kind}
    if pa.types.is_list(kind):
        return [value_of(kind.value_type, number + index) for index in range(number % 3)]
    if pa.types.is_map(kind):
        return [(f"k{index}", value_of(kind.item_type, number + index)) for index in range(number % 3)]
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return f"text {number}" if pa.types.is_string(kind) else b"bytes"
    return bool(number % 2) if pa.types.is_boolean(kind) else number


def contains(wide: Any, narrow: Any) -> bool:
    """Whether a value in a wider type is the same, apart from fields that are null."""
    if isinstance(narrow, dict):
        return isinstance(wide, dict) and all(
            contains(value, narrow[name]) if name in narrow else value is None for name, value in wide.items()
        )
    if isinstance(narrow, list | tuple) and isinstance(wide, list | tuple):
        return len(wide) == len(narrow) and all(map(contains, wide, narrow))
    return bool(wide == narrow)


@given(SCHEMAS, SCHEMAS, st.integers(0, 5), st.integers(0, 8))
def test_rows_are_the_same_in_a_schema_that_takes_them(
    table: pa.Schema, rows: pa.Schema, start: int, count: int
) -> None:
    """Slices, too, with nulls at any depth."""
    known = merged_schema(pa.schema([]), table).schema
    found = merged_schema(known, rows)
    fitting = [field for field in rows if field.name not in found.mismatches]
    given_rows = [{field.name: value_of(field.type, number) for field in fitting} for number in range(10)]
    batch = pa.RecordBatch.from_pylist(given_rows, schema=pa.schema(fitting)).slice(start, count)
    if not fitting:
        return
    result = aligned(batch, found.schema)
    result.validate(full=True)
    assert result.schema == found.schema
    assert found.schema == merged_schema(found.schema, found.schema).schema
    for wide, narrow in zip(result.to_pylist(), given_rows[start : start + count], strict=True):
        assert contains(wide, narrow)


def test_intervals_are_stored_as_microseconds() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1_500, None], pa.duration("ms"))], ["wait"])
    schema = merged_schema(pa.schema([]), batch.schema).schema
    assert schema == pa.schema([("wait", pa.int64())])
    assert aligned(batch, schema).to_pylist() == [{"wait": 1_500_000}, {"wait": None}]


def test_storable_types_are_nullable_everywhere() -> None:
    kind = pa.struct(
        [pa.field("a", pa.list_(pa.field("x", pa.string_view(), nullable=False)), nullable=False)]
    )
    assert storable(kind) == pa.struct([("a", TEXTS)])


def test_nested_names_must_differ_in_more_than_case() -> None:
    """Delta would refuse the column, and the table would stop."""
    table = pa.schema([("user", pa.struct([("id", pa.int64())]))])
    found = merged_schema(table, pa.schema([("user", pa.struct([("Id", pa.int64())]))]))
    assert found.mismatches == {"user": "user.Id: the table has id; names must differ in more than case"}
    assert found.schema == table
