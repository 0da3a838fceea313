"""The schemas of the formats, and validation of a user's schema."""

from collections.abc import Mapping

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.reading.option_values import OptionError, flag

#: The connector's columns in order.
RECORD_TYPES: Mapping[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(
        StructType([StructField("key", StringType()), StructField("value", BinaryType())]),
    ),
}


def record_schema(*, include_headers: bool) -> StructType:
    """Return the connector's schema."""
    return schema_of(
        {name: RECORD_TYPES[name] for name in RECORD_TYPES if include_headers or name != "headers"}
    )


def schema_of_options(options: Mapping[str, str]) -> StructType:
    """Return the default schema of a source with these options.

    :raises OptionError: When `includeHeaders` is neither true nor false.
    """
    lower_options = {name.lower(): value for name, value in options.items()}
    return record_schema(include_headers=flag("includeHeaders", lower_options.get("includeheaders", "false")))


def schema_of(types: Mapping[str, DataType]) -> StructType:
    """Return a schema of these columns; all are nullable, as in the connector."""
    return StructType([StructField(name, column) for name, column in types.items()])


def requested_columns(schema: StructType, types: Mapping[str, DataType]) -> tuple[str, ...]:
    """Return the columns that a schema selects, in its order.

    :raises OptionError: For an unknown column, or one with another type.
    """
    if not schema.fields:
        message = f"the schema has no columns; these can be read: {', '.join(types)}"
        raise OptionError(message)
    for column in schema.fields:
        if column.name not in types:
            message = f"there is no column '{column.name}'; these can be read: {', '.join(types)}"
            raise OptionError(message)
        expected, requested_type = types[column.name].simpleString(), column.dataType.simpleString()
        if requested_type != expected:  # ignores nullability
            message = f"column '{column.name}' is {expected}, not {requested_type}; cast it afterwards"
            raise OptionError(message)
    return tuple(schema.names)
