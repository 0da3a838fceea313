"""Avro records of flat schemas as columns, without an object for each value.

Flat are records whose fields are numbers, booleans, texts, bytes and enums, or unions of one of these with null. What
is not read here is left to the codec of single values, which says why.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.codecs import ReadRows
from barnabas.codecs.binary_column import binary_bounds

_MICROS_PER_MILLI = 1_000
_MILLIS_MAX = (2**63 - 1) // _MICROS_PER_MILLI
_MILLIS = ("timestamp-millis", "local-timestamp-millis")
_PRIMITIVES = frozenset({"int", "long", "bytes", "string", "boolean", "float", "double"})
_NULLS: tuple[Any, ...] = ("null", {"type": "null"})

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


class FlatField(NamedTuple):
    """A field of a flat record."""

    type: pa.DataType  #: of its column
    primitive: str  #: type of Avro that its bytes have
    null_branch: int = -1  #: of a union with null; -1 for others
    symbols: tuple[str, ...] = ()  #: of an enum
    is_millis: bool = False  #: whether numbers are milliseconds


def flat_fields(schema: Any, columns: pa.Schema) -> list[FlatField] | None:
    """Return the fields of a record, None if it is not flat.

    :param schema: An expanded schema.
    :param columns: Its columns.
    """
    fields = [
        _field(field["type"], column.type) for field, column in zip(schema["fields"], columns, strict=True)
    ]
    return None if None in fields else [field for field in fields if field is not None]


def _field(part: Any, kind: pa.DataType) -> FlatField | None:
    if isinstance(part, list):
        others = [branch for branch in part if branch not in _NULLS]
        if len(part) != 2 or len(others) != 1:
            return None
        null_branch = 1 - part.index(others[0])
        inner = _field(others[0], kind)
        return None if inner is None or inner.null_branch >= 0 else inner._replace(null_branch=null_branch)
    name = part["type"] if isinstance(part, dict) else part
    if isinstance(name, dict | list):
        return _field(name, kind)
    if name == "enum":
        return FlatField(kind, "int", symbols=tuple(part["symbols"]))
    if name not in _PRIMITIVES or pa.types.is_decimal(kind):
        return None
    logical = part.get("logicalType") if isinstance(part, dict) else None
    return FlatField(kind, name, is_millis=pa.types.is_timestamp(kind) and logical in _MILLIS)


class FlatAvroReader:
    """Reads values of one flat schema."""

    def __init__(self, fields: Sequence[FlatField], row_type: pa.StructType, header: bytes) -> None:
        """:param row_type: Of the rows; everything is nullable.
        :param header: What each value begins with.
        """
        self._fields = fields
        self._row_type = row_type
        self._header = np.frombuffer(header, np.uint8)
        self._null_branches = np.array([field.null_branch for field in fields])

    def read(self, values: pa.Array) -> ReadRows | None:
        """Read the values that can be read; None if none can, because some text is not UTF-8.

        :param values: Binary.
        """
        # importing numba takes most of a second
        from barnabas.codecs.avro_scan_numba import KINDS, scan_values

        kinds = np.array([KINDS[field.primitive] for field in self._fields])
        data, starts, ends = binary_bounds(values)
        shape = len(self._fields), len(values)
        numbers, lengths = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        is_valid, is_read = np.zeros(shape, bool), np.zeros(len(values), bool)
        has_header = self._has_header(values, data, starts, ends)
        bodies = np.where(has_header, starts + len(self._header), ends)
        scan_values(data, bodies, ends, kinds, self._null_branches, numbers, lengths, is_valid, is_read)
        is_read &= has_header
        for field, column, valid in zip(self._fields, numbers, is_valid, strict=True):
            is_read &= ~valid | _fits(field, column)
        positions = np.flatnonzero(is_read)
        try:
            arrays = [
                _array(
                    field,
                    data,
                    numbers[index][positions],
                    lengths[index][positions],
                    ~is_valid[index][positions],
                )
                for index, field in enumerate(self._fields)
            ]
        except pa.ArrowInvalid:
            return None
        return ReadRows(pa.StructArray.from_arrays(arrays, fields=list(self._row_type)), positions)

    def _has_header(
        self, values: pa.Array, data: npt.NDArray[np.uint8], starts: Integers, ends: Integers
    ) -> Booleans:
        """Return which values are not null and begin with the header."""
        found: Booleans = values.is_valid().to_numpy(zero_copy_only=False)
        size = len(self._header)
        if size:
            found = found & (ends - starts >= size)
            headers = data[starts[found, np.newaxis] + np.arange(size)]
            found[found] = (headers == self._header).all(axis=1)
        return found


def _fits(field: FlatField, numbers: Integers) -> Booleans | bool:
    if field.symbols:
        return (numbers >= 0) & (numbers < len(field.symbols))
    return (numbers >= -_MILLIS_MAX) & (numbers <= _MILLIS_MAX) if field.is_millis else True


def _array(
    field: FlatField, data: npt.NDArray[np.uint8], numbers: Integers, lengths: Integers, is_null: Booleans
) -> pa.Array:
    """Return a column.

    :raises pa.ArrowInvalid: A text is not UTF-8.
    """
    if pa.types.is_string(field.type) or pa.types.is_binary(field.type):
        if field.symbols:
            indexes = pa.array(numbers.astype(np.int32), mask=is_null)
            return pa.DictionaryArray.from_arrays(indexes, pa.array(field.symbols)).cast(field.type)
        return _binary(data, numbers, lengths, is_null).cast(field.type)
    if pa.types.is_boolean(field.type):
        return pa.array(numbers != 0, mask=is_null)
    if pa.types.is_float32(field.type):
        return pa.array(numbers.astype(np.uint32).view(np.float32), mask=is_null, from_pandas=False)
    if pa.types.is_float64(field.type):
        return pa.array(numbers.view(np.float64), mask=is_null, from_pandas=False)
    if field.type.bit_width == 32:
        return pa.array(numbers.astype(np.int32), mask=is_null).view(field.type)
    return pa.array(numbers * _MICROS_PER_MILLI if field.is_millis else numbers, mask=is_null).view(
        field.type
    )


def _binary(data: npt.NDArray[np.uint8], starts: Integers, lengths: Integers, is_null: Booleans) -> pa.Array:
    from barnabas.codecs.avro_scan_numba import gather_bytes

    offsets = np.zeros(len(starts) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    target = np.empty(int(offsets[-1]), np.uint8)
    gather_bytes(data, starts, lengths, target)
    validity = pa.array(~is_null).buffers()[1]
    return pa.Array.from_buffers(
        pa.binary(), len(starts), [validity, pa.py_buffer(offsets), pa.py_buffer(target)]
    )
