"""Converts columns of values to columns of rows and back, in Arrow; failures get a reason, other rows pass."""

from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.codecs import ColumnReader, ValueCodec, ValueDecoder
from barnabas.codecs.errors import described
from barnabas.registry.client import RegistryUnavailable

_NULL_VALUE = "the value is null"
#: For fewer values it does not pay to read columns.
_MANY = 64
#: The errors of Arrow for values that do not fit a column.
_MISFITS = (pa.ArrowException, OverflowError, UnicodeEncodeError)


def row_type(codec: ValueDecoder) -> pa.StructType:
    """Return the type of a column of decoded rows, in which all is nullable: rows that cannot be decoded are null."""
    return _relaxed(pa.struct(list(codec.columns)))


def _relaxed(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _relaxed(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_relaxed(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _relaxed(kind.item_type))
    return kind


def _numbers(kind: pa.DataType) -> pa.DataType:
    """Return the type with numbers for times, because Python's types have smaller ranges."""
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _numbers(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_numbers(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_numbers(kind.key_type), _numbers(kind.item_type))
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return pa.int64()
    return pa.int32() if pa.types.is_date(kind) else kind


def decoded(codec: ValueDecoder, values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Decode values to rows; return them, and the reasons for null rows.

    :raises RegistryUnavailable: A codec that needs schemas of a registry does not get them.
    """
    read = codec.read_column(values) if isinstance(codec, ColumnReader) and len(values) >= _MANY else None
    if read is None:
        return _decoded_singly(codec, values)
    if len(read.positions) == len(values):
        return read.rows, pa.nulls(len(values), pa.string())
    is_left = np.ones(len(values), bool)
    is_left[read.positions] = False
    left = np.flatnonzero(is_left)
    others, reasons = _decoded_singly(codec, values.take(pa.array(left)))
    order = pa.array(np.argsort(np.concatenate([read.positions, left]), kind="stable"))
    no_reasons = pa.nulls(len(read.positions), pa.string())
    return pa.concat_arrays([read.rows, others]).take(order), pa.concat_arrays([no_reasons, reasons]).take(
        order
    )


def _decoded_singly(codec: ValueDecoder, values: pa.Array) -> tuple[pa.Array, pa.Array]:
    rows: list[dict[str, Any] | None] = []
    reasons: list[str | None] = []
    for value in values.to_pylist():
        row, reason = (None, _NULL_VALUE) if value is None else _decoded(codec, value)
        rows.append(row)
        reasons.append(reason)
    kind = row_type(codec)
    try:
        return pa.array(rows, kind), pa.array(reasons, pa.string())
    except _MISFITS:  # a number or a text in some row does not fit its column
        for index, row in enumerate(rows):
            reason = None if row is None else _misfit(row, kind)
            if reason is not None:
                rows[index], reasons[index] = None, f"the value is not {codec.label}: {reason}"
        return pa.array(rows, kind), pa.array(reasons, pa.string())


def _decoded(codec: ValueDecoder, value: bytes) -> tuple[dict[str, Any] | None, str | None]:
    try:
        return codec.decode(value), None
    except RegistryUnavailable:
        raise
    except Exception as error:  # libraries document no error types for malformed values
        return None, f"the value is not {codec.label}: {described(error)}"


def _misfit(row: dict[str, Any], kind: pa.DataType) -> str | None:
    try:
        pa.array([row], kind)
    except _MISFITS as error:
        return described(error)
    return None


def encoded(codec: ValueCodec, rows: pa.Array, selected: list[bool]) -> tuple[pa.Array, pa.Array]:
    """Encode the selected rows; return the values, and the reasons for null values."""
    encoded_values: list[bytes | None] = []
    reasons: list[str | None] = []
    for row, is_wanted in zip(rows.cast(_numbers(rows.type)).to_pylist(), selected, strict=True):
        value, reason = _encoded(codec, row) if is_wanted else (None, None)
        encoded_values.append(value)
        reasons.append(reason)
    return pa.array(encoded_values, pa.binary()), pa.array(reasons, pa.string())


def _encoded(codec: ValueCodec, row: dict[str, Any]) -> tuple[bytes | None, str | None]:
    try:
        return codec.encode(row), None
    except Exception as error:  # as above
        return None, f"the row cannot be {codec.label}: {described(error)}"
