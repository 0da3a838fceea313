"""The format `barnabas-batches`: a row for each record batch, from its header alone; records are not decoded.

A package of its own, as Spark takes one format from each package whose name begins with `pyspark_`. Like the other one
it imports nothing but what Spark itself has until it is used.
"""

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """Options are those of the format `barnabas`."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "barnabas-batches"

    def schema(self) -> StructType:
        """What headers tell."""
        from pyspark_barnabas.source.header_rows import BATCH_TYPES
        from pyspark_barnabas.source.schemas import schema_of

        return schema_of(BATCH_TYPES)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`."""
        from pyspark_barnabas.source.batch_reader import BatchReader
        from pyspark_barnabas.source.header_rows import BATCH_TYPES, read_headers
        from pyspark_barnabas.source.schemas import wanted_columns

        return BatchReader(self.options, wanted_columns(schema, BATCH_TYPES), read_headers)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """For `spark.readStream`."""
        from pyspark_barnabas.source.header_rows import BATCH_TYPES, read_headers
        from pyspark_barnabas.source.schemas import wanted_columns
        from pyspark_barnabas.source.stream_reader import StreamReader

        return StreamReader(self.options, wanted_columns(schema, BATCH_TYPES), read_headers)
