"""Decodes the values of records. What cannot be decoded keeps its record and gets an error, so nothing is lost."""

from enum import Enum
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import DataType, StringType, StructField, StructType

from barnabas.codecs import CodecSpec
from pyspark_barnabas.codecs.columns import decoded_type, decoder

#: The fields of a record that decoded rows and dead letters keep.
RECORD = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
#: The column in which Spark's parsers store malformed text.
_CORRUPT = "__corrupt"
_PARSED = "__parsed"
_TEXT = "CAST(value AS STRING)"


class TextFormat(Enum):
    JSON = "json"
    CSV = "csv"


class TextSpec(NamedTuple):
    """Values in UTF-8."""

    schema: StructType
    format: TextFormat = TextFormat.JSON


def json_values(schema: StructType | str) -> TextSpec:
    """Return the description of JSON objects.

    :param schema: Their fields; DDL such as "id BIGINT, name STRING" needs a session.
    """
    if isinstance(schema, StructType):
        return TextSpec(schema)
    parsed = StructType.fromDDL(schema)
    if not isinstance(parsed, StructType):
        raise ValueError(f"{schema} is one type; columns such as 'id BIGINT, name STRING' are expected")
    return TextSpec(parsed)


def decode(records: DataFrame, values: TextSpec | CodecSpec) -> DataFrame:
    """Decode the values of records.

    :param records: With the columns of the format `barnabas` and its option `includeHeaders`.
    :return: The columns `RECORD`; `row`, a struct, null if the value cannot be decoded; `error`, null if it can.
    """
    fields = records.select(*RECORD)
    if isinstance(values, CodecSpec):
        return _decode_in_python(fields, values)
    parsed = fields.withColumn(_PARSED, _parsed(values)).withColumn("error", _error(values))
    row = f.struct(*[f.col(f"{_PARSED}.`{name}`").alias(name) for name in values.schema.names])
    return parsed.select(*RECORD, f.when(f.col("error").isNull(), row).alias("row"), "error")


def expect(decoded: DataFrame, **conditions: str) -> DataFrame:
    """Give rows that violate a condition an error; its record is kept, so the row can become a dead letter.

    :param conditions: SQL by name, such as paid="row.cents >= 0"; null counts as violated.
    """
    for name, condition in conditions.items():
        reason = f"expectation {name}: {condition} is not true"
        broken = f.col("error").isNull() & ~f.coalesce(f.expr(condition), f.lit(False))
        decoded = decoded.withColumn("error", f.when(broken, f.lit(reason)).otherwise(f.col("error")))
    return decoded


def good_rows(decoded: DataFrame, *record_columns: str) -> DataFrame:
    """Return the rows without an error.

    :param record_columns: The columns of the record that are kept, such as "topic" and "offset".
    """
    return decoded.where("error IS NULL").select("row.*", *record_columns)


def _decode_in_python(fields: DataFrame, spec: CodecSpec) -> DataFrame:
    both = [StructField("row", decoded_type(spec.codec())), StructField("error", StringType())]
    # nondeterministic, or a filter on the error would decode each value twice
    udf = f.arrow_udf(decoder(spec), returnType=StructType(both))  # type: ignore[attr-defined]
    function = udf.asNondeterministic()
    parsed = fields.withColumn(_PARSED, function("value"))
    return parsed.select(*RECORD, f"{_PARSED}.row", f"{_PARSED}.error")


def _parsed(values: TextSpec) -> Column:
    with_corrupt = StructType([*values.schema.fields]).add(_CORRUPT, StringType())
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    if values.format is TextFormat.CSV:
        return f.from_csv(f.expr(_TEXT), ddl(with_corrupt), options)
    return f.from_json(f.expr(_TEXT), with_corrupt, options)


def _error(values: TextSpec) -> Column:
    """Return the reason why a value cannot be decoded; null if it can."""
    parsed = f.col(_PARSED)
    misfit = f"the value is not {values.format.name} with the columns {ddl(values.schema)}"
    return (
        f.when(f.col("value").isNull(), f.lit("the value is null"))
        .when(~f.expr(f"is_valid_utf8({_TEXT})"), f.lit("the value is not UTF-8"))
        .when(parsed.isNull() | parsed[_CORRUPT].isNotNull(), f.lit(misfit))
    )


def ddl(schema: StructType) -> str:
    """Return the columns as DDL, without a session, which `StructType.toDDL` needs."""
    return ",".join(f"{_quoted(field.name)} {_type_text(field.dataType)}" for field in schema.fields)


def _type_text(kind: DataType) -> str:
    text = kind.simpleString()
    return text if "<" in text else text.upper()  # names of nested fields keep their case


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f"`{name.replace('`', '``')}`"
