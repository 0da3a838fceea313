"""Spark data source in Python for topics of Barnabas and of Apache Kafka.

Spark itself looks for packages whose name begins with `pyspark_`, imports them when a session first asks for a data
source, and registers the `DefaultSource` of each. An error in this module would break every session on a machine, so
it imports only Spark and two small modules; readers and writers are imported when Spark requests them.
"""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from pyspark_barnabas.runtime.broken_pipe import suppress_broken_pipe
from pyspark_barnabas.runtime.gc_freeze import freeze_long_lived_objects

suppress_broken_pipe()  # every Spark process that reads or writes imports this module


class DefaultSource(DataSource):
    """The format `barnabas`: options and columns are those of Spark's Kafka connector."""

    @classmethod
    def name(cls) -> str:
        return "barnabas"

    def schema(self) -> StructType:
        """Return the connector's columns, with `headers` if `includeHeaders` is set."""
        from pyspark_barnabas.plain_errors import plain_errors
        from pyspark_barnabas.source.catalog_tables import options_of_new_table, with_options
        from pyspark_barnabas.source.schemas import schema_of_options

        with plain_errors():
            table = options_of_new_table(self.options)
            schema = schema_of_options(self.options if table is None else table)
        if table is not None:
            schema = with_options(schema, table)
        freeze_long_lived_objects()  # Spark's planner process creates data sources and calls nothing after this
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for `spark.read`."""
        from pyspark_barnabas.plain_errors import plain_errors
        from pyspark_barnabas.source.batch_reader import BatchReader
        from pyspark_barnabas.source.catalog_tables import options_for_reading
        from pyspark_barnabas.source.schemas import RECORD_TYPES, requested_columns

        with plain_errors():
            options = options_for_reading(schema, self.options)
            return BatchReader(options, requested_columns(schema, RECORD_TYPES))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader for `spark.readStream`."""
        from pyspark_barnabas.source.schemas import RECORD_TYPES
        from pyspark_barnabas.source.stream_reader import stream_reader

        return stream_reader(self.options, schema, RECORD_TYPES)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer for `df.write`."""
        from pyspark_barnabas.plain_errors import plain_errors
        from pyspark_barnabas.sink.writers import batch_writer

        with plain_errors():
            return batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Return the writer for `df.writeStream`."""
        from pyspark_barnabas.plain_errors import plain_errors
        from pyspark_barnabas.sink.writers import stream_writer

        with plain_errors():
            return stream_writer(self.options, schema, overwrite)
