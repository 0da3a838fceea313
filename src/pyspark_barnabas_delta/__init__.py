"""Format `barnabas-delta`: a sink of streams for Delta tables, exactly once and without a jar.

It is a separate package because Spark registers one format per package whose name begins with `pyspark_`. Like
`pyspark_barnabas`, it imports only Spark until it is used.
"""

from pyspark.sql.datasource import DataSource, DataSourceStreamWriter
from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """The format `barnabas-delta`, for `df.writeStream` and sinks of Declarative Pipelines."""

    @classmethod
    def name(cls) -> str:
        return "barnabas-delta"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Return the writer for `df.writeStream`."""
        from pyspark_barnabas.plain_errors import plain_errors
        from pyspark_barnabas.writers.delta_sink import stream_writer

        with plain_errors():
            return stream_writer(self.options, schema, overwrite)
