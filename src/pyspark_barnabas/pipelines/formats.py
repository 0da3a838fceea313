"""Bytes to columns and back. What cannot be decoded keeps its bytes and gets a reason, so that nothing is lost."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructType

from pyspark_barnabas.pipelines.declaration import RESERVED, Format, TopicSink
from pyspark_barnabas.pipelines.failures import FlowError

#: Where Spark's parsers put a text that they cannot make sense of.
_CORRUPT = f"{RESERVED}corrupt"
_VALUE = "CAST(value AS STRING)"
#: What of a record a dead letter keeps.
LETTER = "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint>"


def decoded(records: DataFrame, wanted: Format, schema: StructType | None) -> DataFrame:
    """Rows and what is none.

    :param records: key, value, topic, partition, offset, timestamp.
    :return: `row`, null for what cannot be decoded; `reason`, null for rows; `letter`, the record itself.
    """
    letter = f.struct("key", "value", "topic", "partition", "offset").cast(LETTER)
    if wanted is Format.RAW:
        row, reason = f.struct(*records.columns), f.lit(None).cast("string")
        return records.select(row.alias("row"), reason.alias("reason"), letter.alias("letter"))
    assert schema is not None, "only raw records have no schema"
    parsed = records.withColumn(f"{RESERVED}parsed", _parsed(wanted, schema))
    place = [
        f.col(name).alias(RESERVED + name) for name in ("key", "topic", "partition", "offset", "timestamp")
    ]
    fields = [f.col(f"{RESERVED}parsed.`{name}`").alias(name) for name in schema.names]
    reason = _reason(wanted, schema)
    row = f.when(reason.isNull(), f.struct(*fields, *place))
    return parsed.select(row.alias("row"), reason.alias("reason"), letter.alias("letter"))


def _parsed(wanted: Format, schema: StructType) -> Column:
    with_corrupt = StructType([*schema.fields]).add(_CORRUPT, StringType())
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    if wanted is Format.CSV:
        return f.from_csv(f.expr(_VALUE), with_corrupt.toDDL(), options)
    return f.from_json(f.expr(_VALUE), with_corrupt, options)


def _reason(wanted: Format, schema: StructType) -> Column:
    """Why a value is no row; null for one that is."""
    parsed = f.col(f"{RESERVED}parsed")
    misfit = f"the value is not {wanted.value.upper()} with the columns {schema.toDDL()}"
    return (
        f.when(f.col("value").isNull(), f.lit("the value is null"))
        .when(~f.expr(f"is_valid_utf8({_VALUE})"), f.lit("the value is not UTF-8"))
        .when(parsed.isNull() | parsed[_CORRUPT].isNotNull(), f.lit(misfit))
    )


def check_schema(schema: StructType, place: str) -> None:
    """See that columns can be told from ours and from each other.

    :raises FlowError: Which column, and where it is declared.
    """
    names = [name.lower() for name in schema.names]
    for name in schema.names:
        if name.startswith(RESERVED):
            raise FlowError(
                f"{place}: column {name}: names that begin with {RESERVED} are taken; choose another"
            )
        if names.count(name.lower()) > 1:
            raise FlowError(f"{place}: column {name} comes twice")


def encoded(rows: DataFrame, sink: TopicSink) -> DataFrame:
    """Rows as records for a topic.

    :raises FlowError: A column is missing, or cannot be what it is to be.
    """
    if sink.format is Format.RAW:
        if "value" not in rows.columns:
            raise FlowError(f"format raw needs a column value; the rows have {', '.join(rows.columns)}")
        return rows
    value = f.to_json(f.struct(*[f.col(f"`{name}`") for name in rows.columns]), {"ignoreNullFields": "false"})
    if sink.key is None:
        return rows.select(value.alias("value"))
    if sink.key not in rows.columns:
        raise FlowError(f"key: there is no column {sink.key}; the rows have {', '.join(rows.columns)}")
    return rows.select(f.col(f"`{sink.key}`").cast("string").alias("key"), value.alias("value"))
