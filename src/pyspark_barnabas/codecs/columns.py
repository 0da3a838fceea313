"""Values in Spark: the types of their columns, what tasks do with batches, and whether rows fit a schema."""

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StructType,
)

from barnabas.codecs import CodecSpec, ValueCodec
from barnabas.codecs.columns import decoded, encoded, row_type

#: Types that may be written where another type is expected: the conversion loses nothing.
_WIDENED: dict[type[DataType], tuple[type[DataType], ...]] = {
    IntegerType: (ByteType, ShortType),
    LongType: (ByteType, ShortType, IntegerType),
    DoubleType: (FloatType,),
}


def column_types(codec: ValueCodec) -> StructType:
    """Return the types of a codec's columns."""
    return from_arrow_schema(codec.columns, prefer_timestamp_ntz=True)


def decoded_type(codec: ValueCodec) -> DataType:
    """Return the type of decoded rows, in which all is nullable: rows that cannot be decoded are null."""
    return from_arrow_type(row_type(codec), prefer_timestamp_ntz=True)


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
            is_castable = not isinstance(expected, StructType | ArrayType | MapType | DecimalType)
            advice = f"; CAST({path} AS {kind.upper()}) would be right" if is_castable else ""
            yield f"column {path} is {actual.simpleString()}, the schema requires {kind}{advice}"


def _fits(actual: DataType, expected: DataType) -> bool:
    if isinstance(actual, DecimalType) and isinstance(expected, DecimalType):
        whole = actual.precision - actual.scale <= expected.precision - expected.scale
        return whole and actual.scale <= expected.scale
    allowed: tuple[type[DataType], ...] = (type(expected), *_WIDENED.get(type(expected), ()), NullType)
    return isinstance(actual, allowed)
