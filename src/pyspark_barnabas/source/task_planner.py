"""Turns ranges of offsets into Spark's tasks, by the sizes of the logs."""

from collections.abc import Collection, Mapping
from contextlib import closing

from barnabas.base.ids import ZERO_UUID, TopicPartition
from pyspark_barnabas.source.cluster_logs import ClusterLogs
from pyspark_barnabas.source.file_logs import FileLogs
from pyspark_barnabas.source.logs import Logs
from pyspark_barnabas.source.options import SourceOptions, Transport
from pyspark_barnabas.source.range_splitting import (
    RECORD_BYTES_DEFAULT,
    OffsetRange,
    TaskLimits,
    split_ranges,
)
from pyspark_barnabas.source.tasks import PlannedRange, ReadTask


def open_logs(options: SourceOptions) -> Logs:
    """Return the logs of the cluster, or of files if no cluster is given."""
    if options.transport is Transport.FILES and not options.connection.bootstrap:
        return FileLogs(options)
    return ClusterLogs(options)


def task_options(options: SourceOptions) -> SourceOptions:
    """Return options for tasks that are not planned by `TaskPlanner`, with a login that they may have."""
    if not options.connection.delegation_tokens:
        return options
    with closing(open_logs(options)) as logs:
        login = logs.task_login()
    return options.for_tasks() if login is None else options.for_tasks().with_login(login)


class TaskPlanner:
    """Makes tasks; remembers the log bytes per offset, which are queried once per partition."""

    def __init__(self, logs: Logs, options: SourceOptions) -> None:
        self._logs = logs
        self._limits = TaskLimits(
            options.task_bytes, options.min_partitions, options.max_records_per_partition
        )
        self._record_bytes: dict[TopicPartition, float] = {}

    def plan(
        self, ranges: Collection[OffsetRange], topic_ids: Mapping[TopicPartition, bytes]
    ) -> list[ReadTask]:
        non_empty = [offset_range for offset_range in ranges if offset_range.offsets_count > 0]
        unknown = [offset_range for offset_range in non_empty if offset_range.tp not in self._record_bytes]
        if unknown:
            self._record_bytes |= self._logs.record_bytes(unknown)

        def planned_range(offset_range: OffsetRange) -> PlannedRange:
            record_bytes = self._record_bytes.get(offset_range.tp, RECORD_BYTES_DEFAULT)
            return PlannedRange(offset_range, topic_ids.get(offset_range.tp, ZERO_UUID), record_bytes)

        tasks = split_ranges(non_empty, self._record_bytes, self._limits)
        login = self._logs.task_login() if tasks else None
        return [
            ReadTask(tuple(planned_range(offset_range) for offset_range in task), login) for task in tasks
        ]
