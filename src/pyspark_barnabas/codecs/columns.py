"""Converts columns of values to columns of rows and back, in Arrow; failures get a reason, other rows pass."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_barnabas.codecs import CodecSpec, ValueCodec
from pyspark_barnabas.codecs.errors import ConversionError

_NULL_VALUE = "the value is null"
_FLAT: dict[type[DataType], pa.DataType] = {
    BooleanType: pa.bool_(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    BinaryType: pa.binary(),
    StringType: pa.string(),
    DateType: pa.date32(),
    TimestampType: pa.timestamp("us", "UTC"),
    TimestampNTZType: pa.timestamp("us"),
    DayTimeIntervalType: pa.duration("us"),
}
#: Types that may be written where another type is expected: the conversion loses nothing.
_WIDENED: dict[type[DataType], tuple[type[DataType], ...]] = {
    IntegerType: (ByteType, ShortType),
    LongType: (ByteType, ShortType, IntegerType),
    DoubleType: (FloatType,),
}


def arrow_type(kind: DataType) -> pa.DataType:
    """Return a codec's type in Arrow, as Spark expects it."""
    match kind:
        case StructType():
            return pa.struct([(field.name, arrow_type(field.dataType)) for field in kind.fields])
        case ArrayType():
            return pa.list_(arrow_type(kind.elementType))
        case MapType():
            return pa.map_(arrow_type(kind.keyType), arrow_type(kind.valueType))
        case DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case _:
            return _FLAT[type(kind)]


def relaxed(kind: DataType) -> DataType:
    """Return the type with everything nullable: rows that cannot be decoded are null."""
    match kind:
        case StructType():
            return StructType([StructField(field.name, relaxed(field.dataType)) for field in kind.fields])
        case ArrayType():
            return ArrayType(relaxed(kind.elementType))
        case MapType():
            return MapType(kind.keyType, relaxed(kind.valueType))
        case _:
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


def decoded(codec: ValueCodec, values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Decode values to rows; return them, and the reasons for null rows."""
    rows: list[dict[str, Any] | None] = []
    reasons: list[str | None] = []
    for value in values.to_pylist():
        row, reason = (None, _NULL_VALUE) if value is None else _decoded(codec, value)
        rows.append(row)
        reasons.append(reason)
    kind = arrow_type(codec.columns)
    try:
        return pa.array(rows, kind), pa.array(reasons, pa.string())
    except (
        pa.ArrowException,
        OverflowError,
    ):  # a number in some row does not fit its column
        for index, row in enumerate(rows):
            reason = None if row is None else _misfit(row, kind)
            if reason is not None:
                rows[index], reasons[index] = None, f"the value is not {codec.label}: {reason}"
        return pa.array(rows, kind), pa.array(reasons, pa.string())


def _decoded(codec: ValueCodec, value: bytes) -> tuple[dict[str, Any] | None, str | None]:
    try:
        return codec.decode(value), None
    except Exception as error:  # libraries document no error types for malformed values
        return None, f"the value is not {codec.label}: {_message(error)}"


def _misfit(row: dict[str, Any], kind: pa.DataType) -> str | None:
    try:
        pa.array([row], kind)
    except (pa.ArrowException, OverflowError) as error:
        return _message(error)
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
        return None, f"the row cannot be {codec.label}: {_message(error)}"


def _message(error: Exception) -> str:
    return str(error) if isinstance(error, ConversionError) else f"{type(error).__name__}: {error}"


def decoder(spec: CodecSpec) -> Callable[[pa.Array], pa.Array]:
    """Return a function for tasks that decodes a column of values to structs of `row` and `error`."""
    codecs: list[ValueCodec] = []  # created in the task, for its first values

    def decode(values: pa.Array) -> pa.Array:
        if not codecs:
            codecs.append(spec.codec())
        rows, reasons = decoded(codecs[0], values)
        return pa.StructArray.from_arrays([rows, reasons], ["row", "error"])

    return decode


def encoder(
    spec: CodecSpec, misfit_action: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for tasks that appends values to checked rows, and marks rows that cannot be encoded.

    :param misfit_action: The action for those.
    """

    def encode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        codec = spec.codec()
        for batch in batches:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            actions = columns["action"].to_pylist()
            values, misfits = encoded(codec, columns["row"], [action is None for action in actions])
            pairs = list(zip(misfits.to_pylist(), actions, columns["reason"].to_pylist(), strict=True))
            columns["action"] = pa.array(
                [action if why is None else misfit_action for why, action, _ in pairs], pa.string()
            )
            columns["reason"] = pa.array([why or reason for why, _, reason in pairs], pa.string())
            yield pa.RecordBatch.from_arrays([*columns.values(), values], [*columns, "value"])

    return encode


def differences(actual: StructType, expected: StructType, path: str = "") -> Iterator[str]:
    """Yield the reasons why rows do not fit a schema; none if they do."""
    there = {field.name: field for field in actual.fields}
    known = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in expected.fields)
    for name in there.keys() - {field.name for field in expected.fields}:
        yield f"column {path}{name} is not in the schema, which has {known}; leave it out"
    for field in expected.fields:
        if field.name in there:
            yield from _differences(there[field.name].dataType, field.dataType, f"{path}{field.name}")
        elif not field.nullable:
            kind = field.dataType.simpleString()
            yield f"column {path}{field.name} is missing; the schema requires it as {kind}"


def _differences(actual: DataType, expected: DataType, path: str) -> Iterator[str]:
    match actual, expected:
        case StructType(), StructType():
            yield from differences(actual, expected, f"{path}.")
        case ArrayType(), ArrayType():
            yield from _differences(actual.elementType, expected.elementType, f"{path}[]")
        case MapType(), MapType():
            yield from _differences(actual.keyType, expected.keyType, f"{path} (keys)")
            yield from _differences(actual.valueType, expected.valueType, f"{path}[]")
        case _ if not _fits(actual, expected):
            kind = expected.simpleString()
            advice = f"; CAST({path} AS {kind.upper()}) would be right" if type(expected) in _FLAT else ""
            yield f"column {path} is {actual.simpleString()}, the schema requires {kind}{advice}"


def _fits(actual: DataType, expected: DataType) -> bool:
    if isinstance(actual, DecimalType) and isinstance(expected, DecimalType):
        whole = actual.precision - actual.scale <= expected.precision - expected.scale
        return whole and actual.scale <= expected.scale
    allowed: tuple[type[DataType], ...] = (type(expected), *_WIDENED.get(type(expected), ()), NullType)
    return isinstance(actual, allowed)
