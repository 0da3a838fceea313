"""A flow's rows: decoded, transformed and checked, as one DataFrame, streaming or not."""

import importlib
import sys
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import BooleanType, StructType, TimestampType

from barnabas.codecs import CodecSpec
from pyspark_barnabas.failures import FlowError, one_line_error
from pyspark_barnabas.pipelines.declaration import (
    RESERVED,
    Expectation,
    ExpectationAction,
    Flow,
    Format,
    Stated,
    TopicSink,
)
from pyspark_barnabas.pipelines.formats import LETTER, check_fit, decoded, with_values

#: The view in `SELECT ... FROM input`.
INPUT = "input"


class CheckedRows(NamedTuple):
    """The rows that a flow writes."""

    #: `row`; `action`, null for rows that satisfy all expectations; `reason`; `letter`, the record that could not be
    #: decoded; and `value` if rows are encoded in Python, null if there is an action.
    frame: DataFrame
    schema: StructType  #: of the rows
    readings: int  #: how often the source is read for it


def checked(
    flow: Flow,
    source: DataFrame,
    schema: StructType | CodecSpec | None,
    folder: Path,
    written: CodecSpec | None,
) -> CheckedRows:
    """Decode, transform and check a flow's input.

    :param source: Records; or rows, of Parquet files.
    :param schema: Of text formats, or a codec.
    :param folder: An additional directory of Python modules.
    :param written: The codec that encodes rows, unless they are written as they are or as text.
    :raises FlowError: The declaration is invalid; with file and line.
    """
    result = _check_rows(flow, source, schema, folder)
    if written is None:
        return result
    assert isinstance(flow.sink, TopicSink), "only topics have binary formats"
    assert flow.sink.coding is not None, "which tells of them"
    check_fit(result.schema, written, flow.sink.coding)
    return result._replace(frame=with_values(result.frame, written, _misfit_action(flow)))


def _misfit_action(flow: Flow) -> ExpectationAction:
    """Return the action for records and rows that do not fit a format."""
    return ExpectationAction.FAIL if flow.dead_letters is None else ExpectationAction.DEAD_LETTER


def _check_rows(
    flow: Flow, source: DataFrame, schema: StructType | CodecSpec | None, folder: Path
) -> CheckedRows:
    if flow.format is Format.PARQUET:
        rows = judgements(flow, transformed(flow, source, folder))
        return CheckedRows(rows, _row_schema(rows), 1)
    parsed = decoded(source, flow.format, schema)
    rows = judgements(flow, transformed(flow, parsed.where("reason IS NULL").select("row.*"), folder))
    row_schema = _row_schema(rows)
    if flow.format is Format.RAW:
        return CheckedRows(rows, row_schema, 1)
    action = _misfit_action(flow)
    bad = parsed.where("reason IS NOT NULL").select(
        f.lit(None).cast(row_schema).alias("row"), f.lit(action.value).alias("action"), "reason", "letter"
    )
    return CheckedRows(rows.union(bad), row_schema, 2)


def _row_schema(rows: DataFrame) -> StructType:
    row_type = rows.schema["row"].dataType
    assert isinstance(row_type, StructType), row_type
    return row_type


def transformed(flow: Flow, rows: DataFrame, folder: Path) -> DataFrame:
    """Return the rows after the watermark and the flow's SQL or function, without internal columns.

    :raises FlowError: The declaration is invalid; with file and line.
    """
    if flow.watermark is not None:
        column, delay = flow.watermark
        if column not in rows.columns or not isinstance(rows.schema[column].dataType, TimestampType):
            raise FlowError(f"{flow.position}: watermark: {column} must be a column of type timestamp")
        rows = rows.withWatermark(column, delay)
    if flow.sql is not None:
        rows.createOrReplaceTempView(INPUT)
        try:
            rows = rows.sparkSession.sql(flow.sql.text)
        except PySparkException as error:
            raise FlowError(f"{flow.sql.position}: sql: {one_line_error(error)}") from error
    if flow.python is not None:
        rows = _called(flow.python, rows, folder)
    return rows.drop(*[name for name in rows.columns if name.startswith(RESERVED)])


def _called(stated: Stated, rows: DataFrame, folder: Path) -> DataFrame:
    module, _, name = stated.text.partition(":")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        function = getattr(importlib.import_module(module), name)
        result = function(rows)
    except Exception as error:  # user code may raise anything
        raise FlowError(
            f"{stated.position}: python: {stated.text}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(result, DataFrame):
        raise FlowError(
            f"{stated.position}: python: {stated.text} returned {type(result).__name__}, not a DataFrame"
        )
    return result


def judgements(flow: Flow, rows: DataFrame) -> DataFrame:
    """Return each row with its action.

    Of the expectations whose condition is not true the most severe action counts; null is not true.

    :raises FlowError: A condition is invalid; with file and line.
    """
    action, reason = f.lit(None).cast("string"), f.lit(None).cast("string")
    for kind in (
        ExpectationAction.DROP,
        ExpectationAction.DEAD_LETTER,
        ExpectationAction.FAIL,
    ):  # the last assignment wins
        broken = [
            _broken(rows, expectation) for expectation in flow.expectations if expectation.action is kind
        ]
        if not broken:
            continue
        reasons = f.concat_ws("; ", *broken)
        hit = reduce(Column.__or__, [expectation.isNotNull() for expectation in broken])
        action, reason = (
            f.when(hit, f.lit(kind.value)).otherwise(action),
            f.when(hit, reasons).otherwise(reason),
        )
    row = f.struct(*[f.col(f"`{name}`") for name in rows.columns])
    letter = f.lit(None).cast(LETTER)
    return rows.select(
        row.alias("row"), action.alias("action"), reason.alias("reason"), letter.alias("letter")
    )


def _broken(rows: DataFrame, expectation: Expectation) -> Column:
    """Return the reason why a row violates expectations; null if it does not."""
    name, condition, _ = expectation
    try:
        [fields] = rows.select(f.expr(condition.text)).schema.fields
    except PySparkException as error:
        raise FlowError(f"{condition.position}: expectation {name}: {one_line_error(error)}") from error
    if not isinstance(fields.dataType, BooleanType):
        type_name = fields.dataType.simpleString()
        raise FlowError(
            f"{condition.position}: expectation {name}: {condition.text} is {type_name}; must be true or false"
        )
    reason = f"expectation {name}: {condition.text} is not true"
    return f.when(~f.coalesce(f.expr(condition.text), f.lit(False)), f.lit(reason))
