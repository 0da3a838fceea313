"""Turns ranges of offsets into Spark's tasks, by the sizes of the logs."""

from collections.abc import Collection, Container, Mapping
from contextlib import closing

from barnabas.base.clock import SystemClock
from barnabas.base.ids import ZERO_UUID, TopicPartition
from barnabas.client.auth.sasl import SaslLogin
from barnabas.reading.cluster_logs import ClusterLogs
from barnabas.reading.logs import Logs
from barnabas.reading.offset_range import OffsetRange, PlannedRange
from barnabas.reading.opening import open_logs
from pyspark_barnabas.delegation import task_login
from pyspark_barnabas.source.options import SourceOptions
from pyspark_barnabas.source.range_splitting import RECORD_BYTES_DEFAULT, TaskLimits, TaskRanges, split_ranges
from pyspark_barnabas.source.tasks import ReadTask
from pyspark_barnabas.stream_offsets import BY_PARTITION, Split


def _login_of_tasks(logs: Logs, options: SourceOptions) -> SaslLogin | None:
    """Return the login of tasks, if they have one of their own."""
    login = options.connection.login
    if login is None or not options.connection.delegation_tokens or not isinstance(logs, ClusterLogs):
        return None
    return logs.run(lambda cluster: task_login(cluster, login, SystemClock()))


def task_options(options: SourceOptions) -> SourceOptions:
    """Return options for tasks that are not planned by `TaskPlanner`, with a login that they may have."""
    if not options.connection.delegation_tokens:
        return options
    with closing(open_logs(options)) as logs:
        login = _login_of_tasks(logs, options)
    return options.for_tasks() if login is None else options.for_tasks().with_login(login)


class TaskPlanner:
    """Makes tasks; remembers the log bytes per offset, which are queried once per partition."""

    def __init__(self, logs: Logs, options: SourceOptions, slots_count: int | None = None) -> None:
        """:param slots_count: How many tasks run at a time; None if that is not known."""
        self._logs = logs
        self._options = options
        self._limits = TaskLimits(
            options.task_bytes,
            options.min_partitions,
            options.max_records_per_partition,
            slots_count,
        )
        self._record_bytes: dict[TopicPartition, float] = {}

    def split(self, ranges: Collection[OffsetRange]) -> Split:
        """Decide on the tasks of a batch before it is planned."""
        tasks = self._split_ranges(ranges, {offset_range.tp for offset_range in ranges})
        partitions = [offset_range.tp for task in tasks for offset_range in task]
        if all(len(task) == 1 for task in tasks) and len(set(partitions)) == len(partitions):
            return BY_PARTITION
        return tuple(tuple((tp, high) for tp, _, high in task) for task in tasks)

    def plan(
        self,
        ranges: Collection[OffsetRange],
        topic_ids: Mapping[TopicPartition, bytes],
        split: Split | None = None,
    ) -> list[ReadTask]:
        """:param topic_ids: Of the partitions that exist; the tasks of others report that they are gone.
        :param split: The tasks that were decided on for these ranges, if they were.
        """
        if split is None:
            tasks = self._split_ranges(ranges, topic_ids)
        else:
            tasks = _split_again(ranges, split)

        def planned_range(offset_range: OffsetRange) -> PlannedRange:
            record_bytes = self._record_bytes.get(offset_range.tp, RECORD_BYTES_DEFAULT)
            return PlannedRange(offset_range, topic_ids.get(offset_range.tp, ZERO_UUID), record_bytes)

        login = _login_of_tasks(self._logs, self._options) if tasks else None
        return [
            ReadTask(tuple(planned_range(offset_range) for offset_range in task), login) for task in tasks
        ]

    def _split_ranges(
        self, ranges: Collection[OffsetRange], existing: Container[TopicPartition]
    ) -> list[TaskRanges]:
        non_empty = [offset_range for offset_range in ranges if offset_range.offsets_count > 0]
        unknown = [
            offset_range
            for offset_range in non_empty
            if offset_range.tp not in self._record_bytes and offset_range.tp in existing
        ]
        if unknown:
            self._record_bytes |= self._logs.record_bytes(unknown)
        return split_ranges(non_empty, self._record_bytes, self._limits)


def _split_again(ranges: Collection[OffsetRange], split: Split) -> list[TaskRanges]:
    """Return the tasks of a split, and one for each range, or rest of a range, that it does not name."""
    left = {offset_range.tp: offset_range for offset_range in ranges}
    tasks: list[TaskRanges] = []
    for ends in split:
        task = []
        for tp, end in ends:
            if tp in left:
                _, low, high = left[tp]
                task.append(OffsetRange(tp, low, min(end, high)))
                left[tp] = OffsetRange(tp, max(low, min(end, high)), high)
        tasks.append(tuple(each for each in task if each.offsets_count > 0))
    rest = [(offset_range,) for offset_range in left.values() if offset_range.offsets_count > 0]
    return [task for task in tasks if task] + rest
