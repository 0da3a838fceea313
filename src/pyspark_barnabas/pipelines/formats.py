"""Decodes bytes to columns and encodes columns. What cannot be decoded keeps its bytes and gets a reason, so nothing
is lost.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, StructField, StructType

from barnabas.codecs import CodecSpec
from pyspark_barnabas.codecs.columns import column_types, differences, encoder
from pyspark_barnabas.decoding.records import RECORD, TextFormat, TextSpec, decode
from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.pipelines.declaration import RESERVED, Coding, ExpectationAction, Format, TopicSink

#: Fields of a record that rows keep.
_POSITION_COLUMNS = ("key", "topic", "partition", "offset", "timestamp")
#: Fields of a record that a dead letter keeps.
LETTER = (
    "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
    "headers:array<struct<key:string,value:binary>>>"
)
#: Spark cuts times to milliseconds by default.
_JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def decoded(records: DataFrame, row_format: Format, schema: StructType | CodecSpec | None) -> DataFrame:
    """Decode records.

    :param records: The columns of a record, with headers unless they are raw.
    :return: `row`, null if it cannot be decoded; `reason`, null for rows; `letter`, the record itself.
    """
    if row_format is Format.RAW:
        row, nothing = f.struct(*records.columns), f.lit(None)
        return records.select(
            row.alias("row"), nothing.cast("string").alias("reason"), nothing.cast(LETTER).alias("letter")
        )
    assert schema is not None, "only raw records have no schema"
    if isinstance(schema, CodecSpec):
        names, parsed = schema.codec().columns.names, decode(records, schema)
    else:
        names = schema.names
        parsed = decode(records, TextSpec(schema, TextFormat(row_format.value)))
    position = [f.col(name).alias(RESERVED + name) for name in _POSITION_COLUMNS]
    fields = [f.col(f"row.`{name}`").alias(name) for name in names]
    row = f.when(f.col("error").isNull(), f.struct(*fields, *position))
    letter = f.struct(*RECORD).cast(LETTER)
    return parsed.select(row.alias("row"), f.col("error").alias("reason"), letter.alias("letter"))


def row_json() -> Column:
    """Return the column `row` as JSON, with nulls."""
    return f.to_json("row", _JSON_OPTIONS)


def check_schema(schema: StructType, position: str) -> None:
    """Check that column names are unique and not reserved.

    :raises FlowError: With the column and the position of its declaration.
    """
    names = [name.lower() for name in schema.names]
    for name in schema.names:
        if name.startswith(RESERVED):
            raise FlowError(
                f"{position}: column {name}: names that begin with {RESERVED} are reserved; use another name"
            )
        if names.count(name.lower()) > 1:
            raise FlowError(f"{position}: column {name} occurs twice")


def check_fit(rows: StructType, spec: CodecSpec, coding: Coding) -> None:
    """Check that rows fit a schema.

    :raises FlowError: With the columns that do not, and what would be right.
    """
    problems = list(differences(rows, column_types(spec.codec())))
    if problems:
        raise FlowError(f"{coding.schema.position}: schema: {'; '.join(problems)}")


def with_values(checked: DataFrame, spec: CodecSpec, misfit: ExpectationAction) -> DataFrame:
    """Return checked rows with their values; rows that cannot be encoded get the action `misfit`."""
    value = StructField("value", BinaryType())
    return checked.mapInArrow(encoder(spec, misfit.value), StructType([*checked.schema.fields, value]))


def encoded(checked: DataFrame, sink: TopicSink) -> DataFrame:
    """Return rows as records for a topic.

    :param checked: `row`; and `value`, if it is already encoded.
    :raises FlowError: A column is missing, or has the wrong type.
    """
    rows = checked.select("row.*")
    if sink.format is Format.RAW:
        if "value" not in rows.columns:
            raise FlowError(f"format raw requires a column value; the rows have {', '.join(rows.columns)}")
        return rows
    is_text = sink.coding is None
    value = row_json() if is_text else f.col("value")
    if sink.key is None:
        return checked.select(value.alias("value"))
    if sink.key not in rows.columns:
        raise FlowError(f"key: column {sink.key} not found; the rows have {', '.join(rows.columns)}")
    return checked.select(f.col(f"row.`{sink.key}`").cast("string").alias("key"), value.alias("value"))
