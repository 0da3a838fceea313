"""Requirements on rows in Parquet files of batches."""

import pytest
from pyspark.sql.types import StructType

from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.writers.parquet import check_columns


def test_no_column_has_the_name_of_the_batch_partition() -> None:
    check_columns(StructType().add("id", "long").add("batches", "string"))
    with pytest.raises(FlowError, match="column Batch: the name is reserved"):
        check_columns(StructType().add("id", "long").add("Batch", "string"))
