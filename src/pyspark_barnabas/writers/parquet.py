"""Writes batches to directories of Parquet files: a batch's directory is renamed when it is complete.

Spark's own file sink keeps a list of files that only Spark reads, and cannot write a batch together with dead letters.
A renamed directory is complete for every reader.
"""

import os
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.paths import uri
from pyspark_barnabas.writers.batch import BatchName

#: The partition column that readers of Hive's layout derive from the directory name.
COLUMN = "batch"


def check_columns(schema: StructType) -> None:
    """Check that no column has that name.

    :raises FlowError: One has.
    """
    for name in schema.names:
        if name.lower() == COLUMN:
            raise FlowError(
                f"column {name}: the name is reserved for the batch in these files; use another name"
            )


def write_parquet(rows: DataFrame, path: Path, partition_by: tuple[str, ...], batch: BatchName) -> None:
    """Write a batch, unless it exists; incomplete attempts are replaced."""
    name = f"{COLUMN}={batch.query_id}.{batch.number}"
    whole, growing = path / name, path / "_growing" / name
    if whole.exists():
        return
    rows.write.mode("overwrite").partitionBy(*partition_by).parquet(uri(growing))
    os.replace(growing, whole)
