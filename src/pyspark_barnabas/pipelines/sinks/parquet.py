"""Batches into directories of Parquet files: a batch's directory gets its name when it is whole.

Spark's own file sink keeps a list of files that only Spark reads, and cannot share a batch with dead letters. A
directory that is renamed is once and whole for every reader.
"""

import os
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from pyspark_barnabas.paths import uri
from pyspark_barnabas.pipelines.failures import FlowError
from pyspark_barnabas.pipelines.sinks.batch import BatchName

#: The column that readers of Hive's layout see of it.
COLUMN = "batch"


def check_columns(schema: StructType) -> None:
    """See that no column has the name that readers give to the batch.

    :raises FlowError: One has.
    """
    for name in schema.names:
        if name.lower() == COLUMN:
            raise FlowError(f"column {name}: readers of the files call the batch so; give it another name")


def write_parquet(rows: DataFrame, path: Path, partition_by: tuple[str, ...], batch: BatchName) -> None:
    """Write a batch, unless it is there; rows of a try that was cut off are written anew."""
    name = f"{COLUMN}={batch.query_id}.{batch.number}"
    whole, growing = path / name, path / "_growing" / name
    if whole.exists():
        return
    rows.write.mode("overwrite").partitionBy(*partition_by).parquet(uri(growing))
    os.replace(growing, whole)
