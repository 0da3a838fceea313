"""Format `barnabas-batches`: one row per record batch, from its header only; records are not decoded.

It is a separate package because Spark registers one format per package whose name begins with `pyspark_`. Like
`pyspark_barnabas`, it imports only Spark until it is used.
"""

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """The format `barnabas-batches`, with the options of the format `barnabas`."""

    @classmethod
    def name(cls) -> str:
        return "barnabas-batches"

    def schema(self) -> StructType:
        """Return the columns of a batch header."""
        from pyspark_barnabas.plain_errors import plain_errors
        from pyspark_barnabas.source.catalog_tables import options_of_new_table, with_options
        from pyspark_barnabas.source.header_rows import BATCH_TYPES
        from pyspark_barnabas.source.schemas import schema_of

        schema = schema_of(BATCH_TYPES)
        with plain_errors():
            table = options_of_new_table(self.options)
        return schema if table is None else with_options(schema, table)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for `spark.read`."""
        from pyspark_barnabas.plain_errors import plain_errors
        from pyspark_barnabas.source.batch_reader import BatchReader
        from pyspark_barnabas.source.catalog_tables import options_for_reading
        from pyspark_barnabas.source.header_rows import BATCH_TYPES, read_headers
        from pyspark_barnabas.source.schemas import requested_columns

        with plain_errors():
            options = options_for_reading(schema, self.options)
            return BatchReader(options, requested_columns(schema, BATCH_TYPES), read_headers)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader for `spark.readStream`."""
        from pyspark_barnabas.source.header_rows import BATCH_TYPES, read_headers
        from pyspark_barnabas.source.stream_reader import stream_reader

        return stream_reader(self.options, schema, BATCH_TYPES, read_headers)
