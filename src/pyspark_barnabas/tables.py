"""Writes the rows of tables in tasks of Spark, one for each partition of a topic; see `barnabas.tables`.

Offsets and commits stay with the service. A task that fails, or that Spark runs twice, leaves files of which no commit
knows.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import SparkSession

from barnabas.reading.connection import ConnectionOptions
from barnabas.registry.client import RegistryClient
from barnabas.tables.building import TableStores, local_writer
from barnabas.tables.range_writing import TopicRange, WriteContext, WrittenRanges, joined
from barnabas.tables.source import TopicSource

_RESULT = "written binary"
_RESULT_TYPE = pa.schema([("written", pa.binary())])


@dataclass(frozen=True)
class RangeTask:
    """All that a task needs to write one range."""

    context: WriteContext
    range: TopicRange
    connection: ConnectionOptions
    stores: TableStores
    registry_url: str | None = field(repr=False)

    def run(self) -> WrittenRanges:
        """Write the rows of the range.

        :raises RegistryUnavailable: If a schema is needed, and the registry does not respond.
        """
        registry = None if self.registry_url is None else RegistryClient(self.registry_url)
        writer = local_writer(self.context.settings, self.stores, registry)
        with closing(TopicSource(self.connection)) as source:
            return writer.write(self.context, source, [self.range])


class SparkRangesWriter:
    """A `RangesWriter` whose tasks run on a cluster."""

    def __init__(
        self,
        spark: SparkSession,
        connection: ConnectionOptions,
        stores: TableStores,
        registry_url: str | None = None,
    ) -> None:
        self._spark = spark
        self._connection = connection
        self._stores = stores
        self._registry_url = registry_url

    def write(
        self, context: WriteContext, source: TopicSource, ranges: Sequence[TopicRange]
    ) -> WrittenRanges:
        """Each task may read as much as the context allows."""
        tasks = [
            RangeTask(context, each, self._connection, self._stores, self._registry_url) for each in ranges
        ]
        indexes = self._spark.range(0, len(tasks), 1, len(tasks))
        written = indexes.mapInArrow(_runner(tasks), _RESULT).collect()
        return joined([pickle.loads(row.written) for row in written], context.schema)


def _runner(tasks: Sequence[RangeTask]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(indexes: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in indexes:
            for index in batch.column(0).to_pylist():
                written = pickle.dumps(tasks[index].run())
                yield pa.RecordBatch.from_pylist([{"written": written}], schema=_RESULT_TYPE)

    return run
