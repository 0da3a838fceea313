"""The columns of a DataFrame that can be written as records: the connector's. No IO."""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from pyspark_barnabas.sink.errors import SinkError
from pyspark_barnabas.sink.options import SinkOptions


def check_schema(schema: StructType, options: SinkOptions) -> None:
    """Check before any task runs whether these rows can be records; other columns are ignored.

    :raises SinkError: Names the missing column, or the expected type.
    """
    types = {field.name: field.dataType for field in schema.fields}
    if "value" not in types:
        raise SinkError(f"a column named value is required; the columns are {', '.join(types) or 'none'}")
    for name in ("key", "value"):
        _check(types, name, (StringType, BinaryType), "string or binary")
    _check(types, "partition", (IntegerType,), "int")
    if options.topic is None:
        if "topic" not in types:
            raise SinkError("the rows have no topic: set option topic, or add a column named topic")
        _check(types, "topic", (StringType,), "string")
    if "headers" in types and not _are_headers(types["headers"]):
        raise _wrong("headers", types["headers"], "array<struct<key:string,value:binary>>")
    if options.include_timestamp:
        if "timestamp" not in types:
            raise SinkError("includeTimestamp requires a column named timestamp, which is missing")
        _check(types, "timestamp", (TimestampType,), "timestamp")


def _check(types: dict[str, DataType], name: str, allowed: tuple[type[DataType], ...], expected: str) -> None:
    if name in types and not isinstance(types[name], allowed):
        raise _wrong(name, types[name], expected)


def _are_headers(column_type: DataType) -> bool:
    if not isinstance(column_type, ArrayType) or not isinstance(column_type.elementType, StructType):
        return False
    fields = column_type.elementType.fields
    types = [type(field.dataType) for field in fields]
    return [field.name for field in fields] == ["key", "value"] and types == [StringType, BinaryType]


def _wrong(name: str, column_type: DataType, expected: str) -> SinkError:
    return SinkError(f"column {name} is of type {column_type.simpleString()}: {expected} is expected")
