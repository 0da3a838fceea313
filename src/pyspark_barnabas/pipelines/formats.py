"""Decodes bytes to columns and encodes columns. What cannot be decoded keeps its bytes and gets a reason, so nothing
is lost.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from pyspark_barnabas.pipelines.codecs import CodecSpec
from pyspark_barnabas.pipelines.codecs.columns import decoder, differences, encoder, relaxed
from pyspark_barnabas.pipelines.declaration import RESERVED, Coding, ExpectationAction, Format, TopicSink
from pyspark_barnabas.pipelines.failures import FlowError

#: The column in which Spark's parsers store malformed text.
_CORRUPT = f"{RESERVED}corrupt"
_PARSED, _REASON = f"{RESERVED}parsed", f"{RESERVED}reason"
#: Fields of a record that rows keep.
_POSITION_COLUMNS = ("key", "topic", "partition", "offset", "timestamp")
_VALUE = "CAST(value AS STRING)"
#: Fields of a record that a dead letter keeps.
LETTER = "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint>"


def decoded(records: DataFrame, row_format: Format, schema: StructType | CodecSpec | None) -> DataFrame:
    """Decode records.

    :param records: key, value, topic, partition, offset, timestamp.
    :return: `row`, null if it cannot be decoded; `reason`, null for rows; `letter`, the record itself.
    """
    letter = f.struct("key", "value", "topic", "partition", "offset").cast(LETTER)
    if row_format is Format.RAW:
        row, reason = f.struct(*records.columns), f.lit(None).cast("string")
        return records.select(row.alias("row"), reason.alias("reason"), letter.alias("letter"))
    assert schema is not None, "only raw records have no schema"
    if isinstance(schema, CodecSpec):
        names = schema.codec().columns.names
        parsed, reason = _read_in_python(records, schema), f.col(_REASON)
    else:
        names = schema.names
        parsed, reason = records.withColumn(_PARSED, _parsed(row_format, schema)), _reason(row_format, schema)
    position = [f.col(name).alias(RESERVED + name) for name in _POSITION_COLUMNS]
    fields = [f.col(f"{_PARSED}.`{name}`").alias(name) for name in names]
    row = f.when(reason.isNull(), f.struct(*fields, *position))
    return parsed.select(row.alias("row"), reason.alias("reason"), letter.alias("letter"))


def _read_in_python(records: DataFrame, spec: CodecSpec) -> DataFrame:
    needed = records.select("value", *_POSITION_COLUMNS)
    added = [
        StructField(_PARSED, relaxed(spec.codec().columns)),
        StructField(_REASON, StringType()),
    ]
    function = decoder(spec, (_PARSED, _REASON))
    return needed.mapInArrow(function, StructType([*needed.schema.fields, *added]))


def _parsed(row_format: Format, schema: StructType) -> Column:
    with_corrupt = StructType([*schema.fields]).add(_CORRUPT, StringType())
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    if row_format is Format.CSV:
        return f.from_csv(f.expr(_VALUE), with_corrupt.toDDL(), options)
    return f.from_json(f.expr(_VALUE), with_corrupt, options)


def _reason(row_format: Format, schema: StructType) -> Column:
    """Return the reason why a value cannot be decoded; null if it can."""
    parsed = f.col(_PARSED)
    misfit = f"the value is not {row_format.value.upper()} with the columns {schema.toDDL()}"
    return (
        f.when(f.col("value").isNull(), f.lit("the value is null"))
        .when(~f.expr(f"is_valid_utf8({_VALUE})"), f.lit("the value is not UTF-8"))
        .when(parsed.isNull() | parsed[_CORRUPT].isNotNull(), f.lit(misfit))
    )


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
    problems = list(differences(rows, spec.codec().columns))
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
    value = f.to_json("row", {"ignoreNullFields": "false"}) if is_text else f.col("value")
    if sink.key is None:
        return checked.select(value.alias("value"))
    if sink.key not in rows.columns:
        raise FlowError(f"key: column {sink.key} not found; the rows have {', '.join(rows.columns)}")
    return checked.select(f.col(f"row.`{sink.key}`").cast("string").alias("key"), value.alias("value"))
