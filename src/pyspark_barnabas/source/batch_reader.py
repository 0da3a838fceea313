"""`spark.read.format("barnabas")`: the records present at planning, however often the DataFrame is read."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from barnabas.reading.opening import open_logs
from barnabas.reading.planning import plan_ranges
from pyspark_barnabas.plain_errors import plain_errors
from pyspark_barnabas.runtime.gc_freeze import freeze_long_lived_objects
from pyspark_barnabas.runtime.local_slots import local_slots_count
from pyspark_barnabas.source.options import SourceOptions, batch_options
from pyspark_barnabas.source.task_planner import TaskPlanner
from pyspark_barnabas.source.tasks import Read, ReadTask, read_records

_LOG = logging.getLogger(__name__)


class BatchReader(DataSourceReader):
    """Reads the selected columns of the requested records."""

    def __init__(self, options: Mapping[str, str], columns: Sequence[str], read: Read = read_records) -> None:
        self._options = batch_options(options)
        self._columns = tuple(columns)
        self._read = read

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_options": self._options.for_tasks()}

    def partitions(self) -> list[InputPartition]:
        """Return the tasks; planning fixes both ends of every partition."""
        with plain_errors():
            planned: list[InputPartition] = list(plan_batch(self._options))
        freeze_long_lived_objects()
        return planned

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with plain_errors():
            yield from self._read(partition, self._options, self._columns)


def plan_batch(options: SourceOptions) -> list[ReadTask]:
    """Return tasks for the requested offsets."""
    for name in options.ignored:
        _LOG.warning("option '%s' does nothing in a batch query", name)
    with closing(open_logs(options)) as logs:
        topic_ids = logs.partitions(options.selection)
        ranges = plan_ranges(logs, topic_ids, options)
        return TaskPlanner(logs, options, local_slots_count()).plan(ranges, topic_ids)
