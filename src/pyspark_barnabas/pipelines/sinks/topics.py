"""Writes batches to topics with the exactly-once sink."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pyspark_barnabas.pipelines.sinks.batch import BatchName

#: Headers of a dead letter; the reason comes first.
_HEADERS = ("reason", "flow", "topic", "partition", "offset")


def write_topic(
    records: DataFrame, options: Mapping[str, str], topic: str, sink_name: str, batch: BatchName
) -> None:
    """Write a batch in transactions, unless it is already written."""
    names = {"topic": topic, "sinkName": f"{sink_name}-{batch.query_id}", "batchId": str(batch.number)}
    writer = records.write.format("barnabas").options(**options).options(**names)
    writer.option("delivery", "exactly-once").mode("append").save()


def dead_letters(checked: DataFrame, flow: str) -> DataFrame:
    """Return records for rows with the action dead_letter.

    A record that could not be decoded keeps its key and value; the value of a row that violated an expectation is its
    JSON.
    """
    row = f.to_json("row", {"ignoreNullFields": "false"}).cast("binary")
    values = {
        "reason": f.col("reason"),
        "flow": f.lit(flow),
        **{name: f.col(f"letter.{name}").cast("string") for name in ("topic", "partition", "offset")},
    }
    headers = [
        f.when(
            values[name].isNotNull(),
            f.struct(f.lit(f"barnabas.{name}").alias("key"), values[name].cast("binary").alias("value")),
        )
        for name in _HEADERS
    ]
    dead = checked.where("action = 'dead_letter'")
    value = f.when(f.col("letter").isNotNull(), f.col("letter.value")).otherwise(row)
    return dead.select(
        f.col("letter.key").alias("key"),
        value.alias("value"),
        f.array_compact(f.array(*headers)).alias("headers"),
    )
