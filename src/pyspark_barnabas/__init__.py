"""Kafka topics in Spark, in Python: of Barnabas and of Apache Kafka alike.

Spark itself looks for packages whose name begins with `pyspark_`, imports them when a session first asks for a data
source, and offers the `DefaultSource` it finds in each. An error in here would break every session on a machine, so
nothing is imported here but what Spark itself has; the readers and writers are imported when they are asked for.
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

suppress_broken_pipe()  # all of Spark's processes that read or write import this


class DefaultSource(DataSource):
    """The format `barnabas`: options and columns are those of Spark's Kafka connector."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "barnabas"

    def schema(self) -> StructType:
        """The connector's columns; with `headers` where `includeHeaders` asks for them."""
        from pyspark_barnabas.source.schemas import schema_of_options

        schema = schema_of_options(self.options)
        freeze_long_lived_objects()  # Spark has a process that makes data sources, and asks there for nothing more
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`."""
        from pyspark_barnabas.source.batch_reader import BatchReader
        from pyspark_barnabas.source.schemas import RECORD_TYPES, wanted_columns

        return BatchReader(self.options, wanted_columns(schema, RECORD_TYPES))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """For `spark.readStream`."""
        from pyspark_barnabas.source.schemas import RECORD_TYPES, wanted_columns
        from pyspark_barnabas.source.stream_reader import StreamReader

        return StreamReader(self.options, wanted_columns(schema, RECORD_TYPES))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """For `df.write`."""
        from pyspark_barnabas.sink.writers import batch_writer

        return batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """For `df.writeStream`."""
        from pyspark_barnabas.sink.writers import stream_writer

        return stream_writer(self.options, schema, overwrite)
