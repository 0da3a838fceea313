"""What rows may be to become Parquet files of batches, and how paths are named to Spark."""

import pytest
from pyspark.sql.types import StructType

from pyspark_barnabas.pipelines.failures import FlowError
from pyspark_barnabas.pipelines.sinks.parquet import check_columns


def test_no_column_is_hidden_by_the_name_of_a_batch() -> None:
    check_columns(StructType().add("id", "long").add("batches", "string"))
    with pytest.raises(FlowError, match="column Batch: the name is reserved"):
        check_columns(StructType().add("id", "long").add("Batch", "string"))
