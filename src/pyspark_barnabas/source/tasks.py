"""Describes and runs Spark tasks. Everything in this module is sent to the executors."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from barnabas.client.auth.sasl import SaslLogin
from barnabas.reading.offset_range import OffsetRange, PlannedRange
from barnabas.reading.range_reader import RawBatches
from barnabas.reading.scan import read_ranged_records, scan_batches
from pyspark_barnabas.runtime.gc_freeze import freeze_long_lived_objects
from pyspark_barnabas.source.options import SourceOptions

#: Turns a task into rows of the selected columns.
Read = Callable[[InputPartition, SourceOptions, Sequence[str]], Iterator[pa.RecordBatch]]


@dataclass
class ReadTask(InputPartition):
    """Ranges that one task reads one after the other."""

    ranges: tuple[PlannedRange, ...]
    login: SaslLogin | None = None  #: of this task, if tasks have logins of their own

    def __repr__(self) -> str:
        return ", ".join(f"{tp} [{low}, {high})" for (tp, low, high), *_ in self.ranges)


def raw_batches(task: InputPartition, options: SourceOptions) -> Iterator[tuple[OffsetRange, RawBatches]]:
    """Yield the batches of a task's ranges; any other partition is the placeholder of an empty plan."""
    if not isinstance(task, ReadTask):
        return
    yield from scan_batches(task.ranges, options if task.login is None else options.with_login(task.login))
    freeze_long_lived_objects()


def read_records(
    task: InputPartition, options: SourceOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task."""
    for offset_range, raw in raw_batches(task, options):
        yield from read_ranged_records(offset_range, raw, options, columns)
