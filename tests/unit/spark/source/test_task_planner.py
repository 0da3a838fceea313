"""Plans: calls to the offset reader, and the contents of tasks."""

from collections.abc import Collection

from barnabas.base.ids import TopicPartition
from barnabas.reading.cluster_logs import ClusterLogs
from barnabas.reading.file_logs import FileLogs
from barnabas.reading.offset_range import OffsetRange
from barnabas.reading.opening import open_logs
from pyspark_barnabas.source.options import SourceOptions, batch_options
from pyspark_barnabas.source.task_planner import TaskPlanner
from support.fake_logs import FakeLogs

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


class WeighedLogs(FakeLogs):
    """Logs in which every offset takes 1000 bytes; records which partitions were requested."""

    def __init__(self) -> None:
        super().__init__({A: 10, B: 20})
        self.requested: list[TopicPartition] = []

    def record_bytes(self, ranges: Collection[OffsetRange]) -> dict[TopicPartition, float]:
        self.requested += [each.tp for each in ranges]
        return {each.tp: 1000.0 for each in ranges}


def options(**given: str) -> SourceOptions:
    return batch_options({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "orders", **given})


def test_the_size_of_a_partition_is_requested_once() -> None:
    logs = WeighedLogs()
    planner = TaskPlanner(logs, options(taskSize="10000"))
    for _ in range(2):
        tasks = planner.plan([OffsetRange(A, 0, 20), OffsetRange(B, 5, 5)], {A: b"i" * 16})
        assert [repr(task) for task in tasks] == ["orders-0 [0, 10)", "orders-0 [10, 20)"]
        assert tasks[0].ranges[0].topic_id == b"i" * 16
        assert tasks[0].ranges[0].record_bytes == 1000.0
    planner.plan([OffsetRange(B, 0, 20)], {B: b"i" * 16})
    assert logs.requested == [A, B]


def test_a_partition_that_is_gone_has_a_task_which_reports_that() -> None:
    """Brokers answer a request for its size with an error, even if data loss is to be ignored."""
    logs = WeighedLogs()
    tasks = TaskPlanner(logs, options()).plan([OffsetRange(A, 0, 10), OffsetRange(B, 0, 20)], {A: b"i" * 16})
    assert [repr(task) for task in tasks] == ["orders-0 [0, 10)", "orders-1 [0, 20)"]
    assert logs.requested == [A]


def test_brokers_are_used_if_there_are_any() -> None:
    for given in ({}, {"transport": "files", "logDirs": "/data"}):
        logs = open_logs(options(**given))
        assert isinstance(logs, ClusterLogs)
        logs.close()


def test_checkpoints_are_used_otherwise() -> None:
    alone = batch_options({"subscribe": "orders", "transport": "files", "logDirs": "/data"})
    assert isinstance(open_logs(alone), FileLogs)
