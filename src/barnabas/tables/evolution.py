"""Fits rows of any schema into the columns of a table, which only grow. No IO.

All columns are nullable: rows that are older than a column, or whose schema lacks it, are null there.
"""

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.tables.column_paths import clashing_columns


class TypeMismatch(Exception):
    """A column of rows cannot be in the column of the table."""


class Merged(NamedTuple):
    """The columns of a table that is to take further rows."""

    schema: pa.Schema
    mismatches: dict[str, str]  #: columns of the rows that cannot be taken, with the reason


def merged_schema(table: pa.Schema, rows: pa.Schema) -> Merged:
    """Add the columns of rows to those of a table."""
    merged = _merged(table, rows)
    if merged.schema == table:
        return merged
    known = list(table)
    clashes = clashing_columns(merged.schema)
    new = [name for name in clashes if merged.schema.field(name) not in known]
    if not new:
        return merged
    refused = [name for name in new if "." in name] or new
    rest = merged_schema(table, pa.schema([field for field in rows if field.name not in refused]))
    reasons = {name: f"{name}: another column has the path {clashes[name]}" for name in refused}
    return Merged(rest.schema, {**rest.mismatches, **reasons})


def _merged(table: pa.Schema, rows: pa.Schema) -> Merged:
    fields = {field.name: field for field in table}
    by_lower = {name.lower(): name for name in fields}
    mismatches: dict[str, str] = {}
    for field in rows:
        known = fields.get(field.name)
        if known is None:
            if field.name.lower() in by_lower:
                other = by_lower[field.name.lower()]
                mismatches[field.name] = (
                    f"the table has a column {other}; names must differ in more than case"
                )
                continue
            by_lower[field.name.lower()] = field.name
            fields[field.name] = pa.field(field.name, storable(field.type))
            continue
        try:
            fields[field.name] = pa.field(field.name, merged_type(known.type, storable(field.type)))
        except TypeMismatch as mismatch:
            mismatches[field.name] = f"{field.name}{mismatch}"
    return Merged(pa.schema(list(fields.values())), mismatches)


def storable(kind: pa.DataType) -> pa.DataType:
    """Return the type in which a table stores a column, nullable all the way down.

    Intervals become microseconds, for which tables have no type.
    """
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, storable(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(storable(kind.key_type), storable(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", storable(kind.value_type)))
    if pa.types.is_duration(kind):
        return pa.int64()
    return _PLAIN.get(kind, kind)


#: Types of readers and writers that hold the same values.
_PLAIN: dict[pa.DataType, pa.DataType] = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}
#: Types whose values a column of another type can hold without loss.
_WIDENED: dict[pa.DataType, frozenset[pa.DataType]] = {
    pa.int32(): frozenset({pa.int64()}),
    pa.float32(): frozenset({pa.float64()}),
}


def merged_type(table: pa.DataType, rows: pa.DataType) -> pa.DataType:
    """Return the type of a table's column that is to take values of a second type; both are storable.

    :raises TypeMismatch: If it cannot; the message continues the column's name.
    """
    if table == rows or table in _WIDENED.get(rows, ()):
        return table
    if pa.types.is_struct(table) and pa.types.is_struct(rows):
        return _merged_struct(table, rows)
    if pa.types.is_list(table) and pa.types.is_list(rows):
        return pa.list_(pa.field("element", _inner("[]", table.value_type, rows.value_type)))
    if pa.types.is_map(table) and pa.types.is_map(rows):
        key = _inner(" (keys)", table.key_type, rows.key_type)
        return pa.map_(key, _inner("[]", table.item_type, rows.item_type))
    if pa.types.is_decimal(table) and pa.types.is_decimal(rows) and _holds(table, rows):
        return table
    raise TypeMismatch(f" is {rows}; the table's column is {table}")


def _merged_struct(table: pa.StructType, rows: pa.StructType) -> pa.DataType:
    fields = {field.name: field.type for field in table}
    by_lower = {name.lower(): name for name in fields}
    for field in rows:
        known = fields.get(field.name)
        other = by_lower.setdefault(field.name.lower(), field.name)
        if other != field.name:
            raise TypeMismatch(f".{field.name}: the table has {other}; names must differ in more than case")
        fields[field.name] = field.type if known is None else _inner(f".{field.name}", known, field.type)
    return pa.struct(list(fields.items()))


def _inner(step: str, table: pa.DataType, rows: pa.DataType) -> pa.DataType:
    try:
        return merged_type(table, rows)
    except TypeMismatch as mismatch:
        raise TypeMismatch(f"{step}{mismatch}") from None


def _holds(table: pa.Decimal128Type, rows: pa.Decimal128Type) -> bool:
    return bool(table.scale >= rows.scale and table.precision - table.scale >= rows.precision - rows.scale)


def aligned(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows with the columns of a schema that was merged with theirs; missing columns are null."""
    there = set(rows.schema.names)
    arrays = [
        aligned_array(rows.column(field.name), field.type)
        if field.name in there
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def aligned_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the values in a wider type."""
    if array.type == kind:
        return array
    if pa.types.is_struct(kind):
        return _aligned_struct(array, kind)
    if array.offset and (pa.types.is_map(kind) or pa.types.is_list(kind)):  # Arrow refuses slices with nulls
        array = array.take(pa.array(range(len(array)), pa.int64()))
    if pa.types.is_map(kind):
        keys = aligned_array(array.keys, kind.key_type)
        items = aligned_array(array.items, kind.item_type)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=kind, mask=_nulls(array))
    if pa.types.is_list(kind):
        values = aligned_array(array.values, kind.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=_nulls(array))
    if pa.types.is_duration(array.type):
        return array.cast(pa.duration("us")).cast(kind)
    return array.cast(kind)


def _aligned_struct(array: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    names = {field.name for field in array.type}
    inner = [
        aligned_array(array.field(field.name), field.type)
        if field.name in names
        else pa.nulls(len(array), field.type)
        for field in kind
    ]
    return pa.StructArray.from_arrays(inner, fields=list(kind), mask=_nulls(array))


def _nulls(array: pa.Array) -> pa.Array | None:
    return pc.is_null(array) if array.null_count else None
