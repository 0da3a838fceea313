"""Ends of micro-batches; new, deleted and truncated partitions."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition, uuid_to_text
from barnabas.reading.data_loss import DataLossError
from pyspark_barnabas.source.options import stream_options
from pyspark_barnabas.source.stream_planner import StreamPlanner
from pyspark_barnabas.source.tasks import ReadTask
from pyspark_barnabas.stream_offsets import BY_PARTITION, StreamOffset
from support.fake_logs import FakeLogs

A, B, C = (TopicPartition("orders", index) for index in range(3))
LENIENT = {"failOnDataLoss": "false"}


class Stream:
    """A planner with its logs and clock."""

    def __init__(
        self, ends: Mapping[TopicPartition, int], slots_count: int | None = None, **given: str
    ) -> None:
        self.logs = FakeLogs(ends)
        self.clock = ManualClock()
        self.pauses: list[float] = []
        options = stream_options({"kafka.bootstrap.servers": "a:1", "subscribe": "orders", **given})
        self.planner = StreamPlanner(self.logs, options, self.clock, self.pauses.append, slots_count)

    def latest(self, start: Mapping[TopicPartition, int], *, limited: bool) -> Mapping[TopicPartition, int]:
        return self.planner.latest(StreamOffset(start), limited=limited).positions

    def tasks(self, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> list[ReadTask]:
        return self.planner.tasks(StreamOffset(start), StreamOffset(end))


def ranges(tasks: list[ReadTask]) -> list[tuple[TopicPartition, int, int]]:
    return [tuple(planned.range) for task in tasks for planned in task.ranges]


def test_a_query_starts_at_the_end_by_default() -> None:
    assert Stream({A: 10, B: 20}).planner.initial().positions == {A: 10, B: 20}
    assert Stream({A: 10, B: 20}, startingOffsets="earliest").planner.initial().positions == {A: 0, B: 0}


def test_the_start_of_a_query_is_not_after_its_first_end() -> None:
    """Spark asks for the end first, and records arrive in between."""
    stream = Stream({A: 10, B: 20})
    end = stream.planner.latest(None, limited=False)
    stream.logs.ends = {A: 15, B: 20}
    start = stream.planner.initial()
    assert (start.positions, end.positions, end.begin) == ({A: 10, B: 20}, {A: 10, B: 20}, {A: 10, B: 20})
    assert ranges(stream.planner.tasks(start, stream.planner.latest(start, limited=False))) == [(A, 10, 15)]


def test_without_a_limit_a_batch_extends_to_the_end() -> None:
    stream = Stream({A: 10, B: 20}, maxOffsetsPerTrigger="4")
    assert stream.latest({A: 0, B: 0}, limited=False) == {A: 10, B: 20}


def test_with_a_limit_a_batch_has_each_partitions_share() -> None:
    stream = Stream({A: 10, B: 30}, maxOffsetsPerTrigger="4")
    assert stream.latest({A: 0, B: 0}, limited=True) == {A: 1, B: 3}
    assert stream.planner.seen == StreamOffset({A: 10, B: 30})


def test_a_new_partition_has_its_share_of_a_limit() -> None:
    stream = Stream({A: 10, B: 10}, maxOffsetsPerTrigger="4")
    assert stream.latest({A: 0}, limited=True) == {A: 2, B: 2}


def test_a_batch_waits_for_the_minimum_number_of_records() -> None:
    stream = Stream({A: 10}, minOffsetsPerTrigger="5", maxTriggerDelay="1m")
    assert stream.latest({A: 9}, limited=True) == {A: 10}  # the first waits for nothing
    stream.logs.ends[A] = 14
    assert stream.latest({A: 10}, limited=True) == {A: 10}
    stream.logs.ends[A] = 15
    assert stream.latest({A: 10}, limited=True) == {A: 15}


def test_a_batch_waits_at_most_the_maximum_delay() -> None:
    stream = Stream({A: 10}, minOffsetsPerTrigger="5", maxTriggerDelay="1m")
    stream.latest({A: 9}, limited=True)
    stream.logs.ends[A] = 11
    stream.clock.advance(59_999)
    assert stream.latest({A: 10}, limited=True) == {A: 10}
    stream.clock.advance(1)
    assert stream.latest({A: 10}, limited=True) == {A: 11}


def test_records_after_the_pinned_end_are_left_to_the_next_query() -> None:
    stream = Stream({A: 10}, minOffsetsPerTrigger="5", maxOffsetsPerTrigger="6")
    stream.planner.pin()
    stream.logs.ends[A] = 12
    assert stream.latest({A: 0}, limited=True) == {A: 6}
    assert stream.latest({A: 6}, limited=True) == {A: 10}, "too few records, but the last"
    assert stream.latest({A: 10}, limited=True) == {A: 10}


def test_a_query_that_starts_after_its_pinned_end_ends_later() -> None:
    """Spark pins first and then asks for the start, and records arrive in between."""
    stream = Stream({A: 10, B: 5})
    stream.planner.pin()
    stream.logs.ends[A] = 12
    start = stream.planner.initial()
    assert start.positions == {A: 12, B: 5}
    stream.logs.ends[A] = 14
    end = stream.planner.latest(start, limited=False)
    assert ranges(stream.planner.tasks(start, end)) == [(A, 12, 14)]
    stream.logs.ends[A] = 16
    assert stream.planner.latest(end, limited=False).positions == {A: 14, B: 5}


def test_a_pinned_end_before_the_checkpoint_is_requested_again() -> None:
    stream = Stream({A: 4})
    stream.planner.pin()
    stream.planner._pause = lambda _: stream.logs.ends.update({A: 12})
    assert stream.latest({A: 10}, limited=False) == {A: 12}


def test_a_partition_that_is_created_after_the_pinned_end_is_new_in_the_next_query() -> None:
    stream = Stream({A: 10})
    stream.planner.pin()
    stream.logs.ends[B] = 5
    start = stream.planner.initial()
    end = stream.planner.latest(start, limited=False)
    assert start.positions == end.positions == {A: 10}
    following = Stream({A: 10, B: 7}).planner
    assert ranges(following.tasks(end, following.latest(end, limited=False))) == [(B, 0, 7)]


def test_tasks_read_from_start_to_end() -> None:
    stream = Stream({A: 10, B: 20})
    assert ranges(stream.tasks({A: 3, B: 20}, {A: 10, B: 20})) == [(A, 3, 10)]


def test_a_new_partition_is_read_from_its_first_record() -> None:
    stream = Stream({A: 10, B: 20})
    assert ranges(stream.tasks({A: 10}, {A: 10, B: 20})) == [(B, 0, 20)]


def test_a_new_partition_without_its_first_records_is_data_loss() -> None:
    stream = Stream({A: 10, B: 20})
    stream.logs.starts[B] = 7
    with pytest.raises(DataLossError, match="new partition orders-1 begins at offset 7"):
        stream.tasks({A: 10}, {A: 10, B: 20})


def test_deleted_partitions_are_data_loss() -> None:
    stream = Stream({A: 10})
    with pytest.raises(DataLossError, match=r"gone: orders-1.*failOnDataLoss"):
        stream.tasks({A: 0, B: 5}, {A: 10})
    with pytest.raises(DataLossError, match="gone: orders-2"):
        stream.tasks({A: 0}, {A: 10, C: 5})


def test_data_loss_can_be_ignored(caplog: pytest.LogCaptureFixture) -> None:
    stream = Stream({A: 10}, **LENIENT)
    assert ranges(stream.tasks({A: 0, B: 5}, {A: 10, C: 5})) == [(A, 0, 10)]
    assert "orders-1" in caplog.text
    assert "orders-2" in caplog.text


def test_a_truncated_partition_is_data_loss() -> None:
    stream = Stream({A: 4})
    with pytest.raises(DataLossError, match="orders-0 ends at offset 4 now, and was read to 10"):
        stream.tasks({A: 10}, {A: 4})


def test_a_truncated_partition_is_read_from_its_first_record_if_data_loss_is_ignored() -> None:
    assert ranges(Stream({A: 4}, **LENIENT).tasks({A: 10}, {A: 4})) == [(A, 0, 4)]


def test_an_end_that_decreased_is_requested_again() -> None:
    stream = Stream({A: 4})
    stream.planner._pause = lambda _: stream.logs.ends.update({A: 12})
    assert stream.latest({A: 10}, limited=False) == {A: 12}


def test_an_end_that_stays_lower_is_finally_accepted() -> None:
    stream = Stream({A: 4})
    assert stream.latest({A: 10}, limited=False) == {A: 4}
    assert stream.pauses == [1.0, 1.0]


def test_tasks_have_the_topic_id_of_their_plan() -> None:
    stream = Stream({A: 4})
    stream.logs.topic_ids["orders"] = bytes(15) + b"\x01"
    [task] = stream.tasks({A: 0}, {A: 4})
    assert task.ranges[0].topic_id == bytes(15) + b"\x01"
    assert repr(task) == "orders-0 [0, 4)"


# The first batch of a query


def written(end: StreamOffset) -> StreamOffset:
    """Return an end as Spark reads it from the checkpoint."""
    return StreamOffset.from_json(end.to_json())


@pytest.mark.parametrize("arrived", [0, 5])
def test_the_first_batch_is_repeated_from_where_it_began(arrived: int) -> None:
    """Spark asks for the start again, which is later now."""
    first = Stream({A: 10, B: 20})
    start = first.planner.initial()
    first.logs.ends[A] += arrived
    end = written(first.planner.latest(start, limited=False))
    expected = [(A, 10, 15)] if arrived else []
    assert ranges(first.planner.tasks(start, end)) == expected
    repeated = Stream({A: 30, B: 40, C: 5}).planner
    assert ranges(repeated.tasks(repeated.initial(), end)) == expected
    assert ranges(repeated.tasks(end, repeated.latest(end, limited=False))) == [
        (A, 10 + arrived, 30),
        (B, 20, 40),
        (C, 0, 5),
    ]


def test_only_the_first_batch_has_the_start_of_the_query() -> None:
    stream = Stream({A: 10})
    first = stream.planner.latest(stream.planner.initial(), limited=False)
    assert first.begin == {A: 10}
    assert stream.planner.latest(written(first), limited=False) == first
    stream.logs.ends[A] = 12
    assert stream.planner.latest(written(first), limited=False).begin is None


def test_a_query_that_began_before_its_topics_existed_reads_them_from_their_first_records() -> None:
    first = Stream({})
    start = first.planner.initial()
    first.logs.ends[A] = 5
    end = written(first.planner.latest(start, limited=False))
    repeated = Stream({A: 9}).planner
    assert ranges(repeated.tasks(repeated.initial(), end)) == [(A, 0, 5)]


def test_a_start_from_the_checkpoint_is_used_even_if_a_query_would_begin_there_now() -> None:
    """Spark 4.1 asks for the end first, and then repeats the second batch."""
    first = Stream({A: 10}, startingOffsets="earliest")
    ends = [written(first.planner.latest(None, limited=False))]
    first.logs.ends[A] = 20
    ends.append(written(first.planner.latest(None, limited=False)))
    repeated = Stream({A: 30}, startingOffsets="earliest")
    repeated.logs.starts[A] = 10
    assert repeated.planner.latest(None, limited=False).begin == ends[0].positions
    assert ranges(repeated.planner.tasks(*ends)) == [(A, 10, 20)]


# The tasks in the checkpoint


def test_a_batch_that_is_repeated_has_the_tasks_of_its_first_attempt_on_any_number_of_slots() -> None:
    start = StreamOffset({A: 0, B: 0, C: 0})
    end = written(Stream({A: 10, B: 10, C: 10}, slots_count=2).planner.latest(start, limited=False))
    for slots_count in (None, 1, 2, 8):
        repeated = Stream({A: 99, B: 99, C: 99}, slots_count).planner.tasks(start, end)
        assert list(map(repr, repeated)) == ["orders-0 [0, 10)", "orders-1 [0, 10), orders-2 [0, 10)"]


def test_a_batch_with_a_task_for_each_partition_keeps_them_on_fewer_slots() -> None:
    start = StreamOffset({A: 0, B: 0, C: 0})
    end = Stream({A: 10, B: 10, C: 10}).planner.latest(start, limited=False)
    repeated = Stream({A: 10, B: 10, C: 10}, slots_count=1).planner.tasks(start, end)
    assert [len(task.ranges) for task in repeated] == [1, 1, 1]


def test_a_large_partition_is_divided_as_in_the_first_attempt() -> None:
    start = StreamOffset({A: 0, B: 5})
    first = Stream({A: 4096, B: 6}, taskSize="2m")
    end = first.planner.latest(start, limited=False)
    assert StreamOffset.from_json(end.to_json()) == end
    repeated = Stream({A: 4096, B: 6}, taskSize="1g").planner.tasks(start, end)
    assert ranges(repeated) == [(A, 0, 2048), (A, 2048, 4096), (B, 5, 6)]


def test_an_end_without_new_records_is_the_start_with_its_tasks() -> None:
    stream = Stream({A: 10})
    end = stream.planner.latest(StreamOffset({A: 0}), limited=False)
    assert stream.planner.latest(end, limited=False) is end


def test_records_that_no_task_of_the_checkpoint_has_get_a_task() -> None:
    stream = Stream({A: 10, B: 20}, **LENIENT)
    end = StreamOffset({A: 10, B: 20}, split=(((A, 4), (C, 7)), ((A, 10),)))
    assert list(map(repr, stream.planner.tasks(StreamOffset({A: 0, B: 0}), end))) == [
        "orders-0 [0, 4)",
        "orders-0 [4, 10)",
        "orders-1 [0, 20)",
    ]


# Recreated topics

OLD, NEW = bytes(15) + b"\x01", bytes(15) + b"\x02"


def recreated(ends: Mapping[TopicPartition, int], **given: str) -> Stream:
    stream = Stream(ends, **given)
    stream.logs.topic_ids["orders"] = NEW
    return stream


def old(positions: Mapping[TopicPartition, int]) -> StreamOffset:
    return StreamOffset(positions, {"orders": OLD})


def new(positions: Mapping[TopicPartition, int]) -> StreamOffset:
    return StreamOffset(positions, {"orders": NEW})


def planned(positions: Mapping[TopicPartition, int]) -> StreamOffset:
    """The end of a batch with one task for each partition."""
    return replace(new(positions), split=BY_PARTITION)


def test_offsets_have_topic_ids() -> None:
    planner = recreated({A: 4}, startingOffsets="earliest").planner
    assert planner.initial() == new({A: 0})
    assert planner.latest(new({A: 0}), limited=False) == replace(planned({A: 4}), begin={A: 0})


def test_a_recreated_topic_is_data_loss_whatever_its_end() -> None:
    for end in (4, 10, 400):
        with pytest.raises(DataLossError, match="topic 'orders' was deleted and created again") as raised:
            recreated({A: end}).planner.latest(old({A: 10}), limited=False)
        for part in (uuid_to_text(OLD), uuid_to_text(NEW), "failOnDataLoss", "startingOffsets"):
            assert part in str(raised.value)


def test_a_recreated_topic_is_read_from_its_start_if_data_loss_is_ignored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stream = recreated({A: 400, B: 3}, **LENIENT)
    start = old({A: 100, B: 5, C: 7})
    end = stream.planner.latest(start, limited=False)
    assert end == planned({A: 400, B: 3})
    assert stream.pauses == [], "the end of a new topic has not decreased"
    assert ranges(stream.planner.tasks(start, end)) == [(A, 0, 400), (B, 0, 3)]
    assert ranges(stream.planner.tasks(end, new({A: 401, B: 3}))) == [(A, 400, 401)]
    [line] = [record.getMessage() for record in caplog.records]
    assert "it is read from its beginning because failOnDataLoss is false" in line


def test_a_recreated_topic_has_its_share_of_a_limit_from_its_start() -> None:
    stream = recreated({A: 10, B: 10}, maxOffsetsPerTrigger="4", **LENIENT)
    assert stream.planner.latest(old({A: 10, B: 10}), limited=True) == planned({A: 2, B: 2})


def test_a_start_that_spark_does_not_pass_in_time_is_checked_by_the_tasks() -> None:
    stream = recreated({A: 400})
    end = stream.planner.latest(None, limited=False)  # as Spark 4.1 calls it
    assert end.split is None
    with pytest.raises(DataLossError, match="created again"):
        stream.planner.tasks(old({A: 100}), end)


def test_a_batch_of_a_topic_recreated_since_cannot_be_repeated() -> None:
    start, end = old({A: 100}), old({A: 200})
    with pytest.raises(DataLossError, match="created again"):
        recreated({A: 400}).planner.tasks(start, end)
    stream = recreated({A: 400}, **LENIENT)
    assert ranges(stream.planner.tasks(start, end)) == []
    following = stream.planner.latest(end, limited=False)
    assert ranges(stream.planner.tasks(end, following)) == [(A, 0, 400)]


def test_neither_can_the_first_batch_whose_start_is_requested_again(caplog: pytest.LogCaptureFixture) -> None:
    stream = recreated({A: 400}, startingOffsets="earliest", **LENIENT)
    assert ranges(stream.planner.tasks(stream.planner.initial(), old({A: 200}))) == []
    [line] = [record.getMessage() for record in caplog.records]
    assert line.index(uuid_to_text(OLD)) < line.index(uuid_to_text(NEW))


def test_a_checkpoint_without_ids_continues_and_then_has_them() -> None:
    stream = recreated({A: 400})
    end = stream.planner.latest(StreamOffset({A: 100}), limited=False)
    assert end == planned({A: 400})
    assert ranges(stream.planner.tasks(StreamOffset({A: 100}), end)) == [(A, 100, 400)]


def test_a_topic_recreated_during_the_first_batch_is_read_from_its_beginning() -> None:
    stream = Stream({A: 10}, **LENIENT)
    stream.logs.topic_ids["orders"] = OLD
    start = stream.planner.initial()
    stream.logs.topic_ids["orders"] = NEW
    end = stream.planner.latest(start, limited=False)
    assert end == replace(planned({A: 10}), begin={})
    assert ranges(stream.planner.tasks(start, end)) == [(A, 0, 10)]
    repeated = recreated({A: 12}, **LENIENT).planner
    assert ranges(repeated.tasks(repeated.initial(), written(end))) == [(A, 0, 10)]


def test_a_cluster_without_ids_is_not_checked() -> None:
    stream = Stream({A: 400})
    end = stream.planner.latest(old({A: 100}), limited=False)
    assert ranges(stream.planner.tasks(old({A: 100}), end)) == [(A, 100, 400)]
