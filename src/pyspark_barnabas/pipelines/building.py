"""Builds a flow's DataFrame: source, schema, and all transformations."""

import json
from collections.abc import Mapping
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from barnabas.codecs import CodecSpec
from pyspark_barnabas.failures import FlowError, one_line_error
from pyspark_barnabas.paths import pattern_of
from pyspark_barnabas.pipelines.declaration import (
    DeltaInput,
    DeltaSink,
    FilesInput,
    Flow,
    Format,
    JdbcInput,
    JdbcSink,
    OutputMode,
    ParquetSink,
    Pipeline,
    Sink,
    TopicInput,
    TopicSink,
)
from pyspark_barnabas.pipelines.formats import check_schema, encoded
from pyspark_barnabas.pipelines.schemas import codec_spec
from pyspark_barnabas.pipelines.sources.delta import delta_stream
from pyspark_barnabas.pipelines.sources.jdbc_incrementing import Takes
from pyspark_barnabas.pipelines.state import StateDirectory
from pyspark_barnabas.pipelines.transforming import CheckedRows, checked
from pyspark_barnabas.writers.delta import check_partitions, delta_schema
from pyspark_barnabas.writers.jdbc import check_table
from pyspark_barnabas.writers.parquet import check_columns

#: Number of records in the sample for an undeclared schema.
SAMPLE_ROWS = 1_000


def built(spark: SparkSession, pipeline: Pipeline, flow: Flow) -> CheckedRows:
    """Return a stream of a flow's rows, with expectations checked.

    :raises FlowError: The declaration is invalid.
    """
    session = spark.newSession()  # each flow has its own views and settings
    schema = _schema(session, pipeline, flow)
    source = _source(session, pipeline, flow, schema)
    result = checked(flow, source, schema, pipeline.path.parent.absolute(), _written(flow.sink))
    _check_sink(flow, result)
    return result


def _written(sink: Sink) -> CodecSpec | None:
    if not isinstance(sink, TopicSink) or sink.coding is None:
        return None
    return codec_spec(sink.coding, sink.format)


def sink_options(pipeline: Pipeline) -> dict[str, str]:
    """Return the options of sink and source for the cluster."""
    return {"kafka.bootstrap.servers": pipeline.bootstrap or "", **pipeline.options}


def source_options(pipeline: Pipeline, source: TopicInput) -> dict[str, str]:
    """Return the options of the data source; the default isolation level is read_committed."""
    limit = {} if source.batch_rows_max is None else {"maxOffsetsPerTrigger": str(source.batch_rows_max)}
    return {
        **sink_options(pipeline),
        "kafka.isolation.level": "read_committed",
        "subscribe": source.topic,
        "startingOffsets": source.starting,
        **limit,
        **source.options,
    }


def _source(
    spark: SparkSession, pipeline: Pipeline, flow: Flow, schema: StructType | CodecSpec | None
) -> DataFrame:
    match flow.input:
        case TopicInput() as topic:
            options = source_options(pipeline, topic)
            if flow.format is not Format.RAW:
                options["includeHeaders"] = "true"  # dead letters keep them
            return spark.readStream.format("barnabas").options(**options).load()
        case DeltaInput() as table:
            return delta_stream(spark, table)
        case JdbcInput():
            return takes(spark, pipeline, flow).stream()
    if not flow.input.path.is_dir():
        raise FlowError(f"{flow.position}: files: there is no directory {flow.input.path}")
    reader = spark.readStream.options(**_files_options(flow.input))
    if flow.format is Format.PARQUET:
        assert isinstance(schema, StructType), "files have a schema"
        return reader.schema(schema).parquet(pattern_of(flow.input.path))
    lines = reader.text(pattern_of(flow.input.path))
    return lines.select(
        f.lit(None).cast("binary").alias("key"),
        f.col("value").cast("binary").alias("value"),
        f.col("_metadata.file_path").alias("topic"),
        f.lit(None).cast("int").alias("partition"),
        f.lit(None).cast("bigint").alias("offset"),
        f.col("_metadata.file_modification_time").alias("timestamp"),
        f.lit(None).cast("array<struct<key:string,value:binary>>").alias("headers"),
    )


def takes(spark: SparkSession, pipeline: Pipeline, flow: Flow) -> Takes:
    """Return the incremental reads of a flow's database."""
    assert isinstance(flow.input, JdbcInput), "only such flows take"
    return Takes(spark, flow.input, StateDirectory(pipeline.state).path / flow.name)


def _files_options(source: FilesInput) -> dict[str, str]:
    return {} if source.batch_files_max is None else {"maxFilesPerTrigger": str(source.batch_files_max)}


def _schema(spark: SparkSession, pipeline: Pipeline, flow: Flow) -> StructType | CodecSpec | None:
    if flow.format is Format.RAW or isinstance(flow.input, DeltaInput | JdbcInput):
        return None
    if flow.coding is not None:
        spec = codec_spec(flow.coding, flow.format)
        check_schema(spec.codec().columns, flow.coding.schema.position)
        return spec
    if flow.schema is None:
        return _inferred(spark, pipeline, flow)
    text, position = flow.schema
    try:
        schema = StructType.fromDDL(text)
    except PySparkException as error:
        raise FlowError(f"{position}: schema: {one_line_error(error)}") from error
    if not isinstance(schema, StructType):
        raise FlowError(
            f"{position}: schema: {text} is one type; columns such as 'id BIGINT, name STRING' are expected"
        )
    check_schema(schema, position)
    return schema


def _inferred(spark: SparkSession, pipeline: Pipeline, flow: Flow) -> StructType:
    """Return the schema of a sample; the first one is stored, so that a restart has the same columns."""
    pinned = StateDirectory(pipeline.state).schema(flow.name)
    if pinned.exists():
        return StructType.fromJson(json.loads(pinned.read_text()))
    assert isinstance(flow.input, TopicInput), "files have a schema"
    options: Mapping[str, str] = {**source_options(pipeline, flow.input), "startingOffsets": "earliest"}
    options = {name: value for name, value in options.items() if name != "maxOffsetsPerTrigger"}
    records = spark.read.format("barnabas").options(**options).load()
    texts = [
        row[0] for row in records.selectExpr("CAST(value AS STRING)").limit(SAMPLE_ROWS).collect() if row[0]
    ]
    sample = spark.sparkContext.parallelize(texts, 1)
    schema = spark.read.option("mode", "DROPMALFORMED").json(sample).schema
    if not schema.fields:
        raise FlowError(
            f"{flow.position}: topic {flow.input.topic} has no JSON to infer a schema from; set schema:"
        )
    check_schema(schema, flow.position)
    _pin(pinned, schema)
    return schema


def _pin(path: Path, schema: StructType) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".fresh")
    fresh.write_text(schema.json())
    fresh.replace(path)


def _check_sink(flow: Flow, result: CheckedRows) -> None:
    """Check before the start that the sink accepts the columns."""
    sink = flow.sink
    try:
        if isinstance(sink, TopicSink):
            encoded(result.frame, sink)
            return
        if isinstance(sink, JdbcSink):
            check_table(result.frame.sparkSession, sink.database, result.schema.names)
        check_partitions(result.schema, sink.partition_by)
        if isinstance(sink, ParquetSink):
            check_columns(result.schema)
        if isinstance(sink, DeltaSink):
            delta_schema(result.schema)
    except FlowError as error:
        raise FlowError(f"{flow.position}: {error}") from error
    if flow.output_mode is OutputMode.UPDATE:
        raise FlowError(
            f"{flow.position}: output_mode update is for topics: a table would keep the old rows, too"
        )
