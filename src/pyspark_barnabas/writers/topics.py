"""Writes batches to topics with the exactly-once sink."""

from collections.abc import Mapping

from pyspark.sql import DataFrame

from pyspark_barnabas.writers.batch import BatchName


def write_topic(
    records: DataFrame, options: Mapping[str, str], topic: str, sink_name: str, batch: BatchName
) -> None:
    """Write a batch in transactions, unless it is already written."""
    names = {"topic": topic, "sinkName": f"{sink_name}-{batch.query_id}", "batchId": str(batch.number)}
    writer = records.write.format("barnabas").options(**options).options(**names)
    writer.option("delivery", "exactly-once").mode("append").save()
