"""The sink's protocol on a broker in this process: crashes at every call, and repeated batches as Spark sends them."""

from collections.abc import Iterable, Iterator

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.group_messages import OffsetAndMetadata
from barnabas.client.admin.groups import Groups
from barnabas.client.admin.offsets import LATEST
from barnabas.client.producer.transaction_requests import TransactionalId
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode, KafkaError
from pyspark_barnabas.sink.bookkeeping import TOPIC
from pyspark_barnabas.sink.errors import Fenced, RowsMoved, SinkError
from pyspark_barnabas.sink.task_writer import TaskOutcome
from support.spark_sink import MOVED, ROWS, TASKS, Calls, Crash, Sink, counted_calls, crash, moments


@pytest.fixture
def calls() -> Iterator[Calls]:
    with counted_calls() as counting:
        yield counting


def test_a_batch_is_written_once_and_the_next_follows(sink: Sink) -> None:
    assert {each.outcome for each in sink.run(TASKS)} == {TaskOutcome.NONE, TaskOutcome.WRITTEN}
    assert sink.read() == ROWS
    assert {each.outcome for each in sink.run(TASKS)} == {TaskOutcome.DONE}
    assert sink.read() == ROWS
    sink.run([["g"], ["h"]], batch=1)
    assert sink.read() == [*ROWS, "g", "h"]


def test_the_groups_of_a_sink_have_no_lag(broker: EmbeddedBroker, sink: Sink) -> None:
    sink.run(TASKS)
    listed = [group.group_id for group in broker.client.groups.list()]
    groups = [name for name in listed if name.startswith(sink.name)]
    assert sink.name in groups
    committed = [each for name in groups for each in broker.client.groups.offsets(name).items()]
    assert {(tp.topic, offset.offset) for tp, offset in committed} == {(TOPIC, 0)}
    ends = broker.client.admin.list_offsets(dict.fromkeys((tp for tp, _ in committed), LATEST))
    assert {end.offset for end in ends.values()} == {0}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_repeated_batch_is_written_once_wherever_its_driver_died(
    broker: EmbeddedBroker, calls: Calls, after: bool
) -> None:
    for at in moments(broker.bootstrap, calls):
        sink = Sink(broker.bootstrap)
        crash(sink, calls, at, after=after)
        sink.run(TASKS)
        assert sink.read() == ROWS, f"call {at}"


def test_a_batch_is_written_once_even_if_its_driver_died_twice(broker: EmbeddedBroker, calls: Calls) -> None:
    of_commit = moments(broker.bootstrap, calls)[-8:]
    for first, second in zip(of_commit, range(2, 60, 7), strict=False):
        sink = Sink(broker.bootstrap)
        crash(sink, calls, first)
        crash(sink, calls, second)
        sink.run(TASKS)
        assert sink.read() == ROWS, f"calls {first} and {second}"


def test_rows_repeated_in_other_tasks_are_written_once(broker: EmbeddedBroker, calls: Calls) -> None:
    for at in moments(broker.bootstrap, calls):
        sink = Sink(broker.bootstrap)
        crash(sink, calls, at)
        sink.run(MOVED)
        assert sink.read() == ROWS, f"call {at}"


@pytest.mark.parametrize("lost", [(2,), (1, 2, 3)], ids=["one", "all"])
def test_transactions_lost_after_the_decision_are_written_again(
    broker: EmbeddedBroker, calls: Calls, lost: tuple[int, ...]
) -> None:
    for at in moments(broker.bootstrap, calls)[:: len(lost)]:
        sink = Sink(broker.bootstrap)
        crash(sink, calls, at)
        sink.lose(*lost)
        sink.run(TASKS)
        assert sink.read() == ROWS, f"call {at}"


@pytest.mark.parametrize("lost", [(1,), (1, 3)], ids=["one", "two"])
def test_lost_transactions_with_moved_rows_fail_instead_of_writing_twice(
    broker: EmbeddedBroker, calls: Calls, lost: tuple[int, ...]
) -> None:
    failures = 0
    for at in moments(broker.bootstrap, calls)[:: len(lost)]:
        sink = Sink(broker.bootstrap)
        crash(sink, calls, at)
        sink.lose(*lost)
        try:
            sink.run(MOVED)
        except RowsMoved:
            failures += 1
            found = sink.read(to_the_end=False)
            assert len(set(found)) == len(found) < len(ROWS)
        else:
            assert sink.read() == ROWS, f"call {at}"
    assert failures


def test_a_retried_task_fences_its_earlier_attempt(sink: Sink) -> None:
    first = sink.write(0, ["a"])
    second = sink.write(0, ["a"])
    with pytest.raises(Fenced, match=r"batch 0 of .* is not committed: task 0 was fenced, because"):
        sink.commit([first])
    assert sink.read(to_the_end=False) == []
    sink.commit([second])
    assert sink.read() == ["a"]


def test_one_of_two_drivers_with_the_same_batch_commits(sink: Sink) -> None:
    slow = [sink.write(task, rows) for task, rows in enumerate(TASKS)]
    quick = [sink.write(task, rows) for task, rows in enumerate(TASKS)]
    with pytest.raises(Fenced):
        sink.commit(slow)
    sink.commit(quick)
    assert sink.read() == ROWS
    sink.abort(slow)
    assert sink.read() == ROWS


def test_a_driver_whose_tasks_were_fenced_cannot_decide_even_if_rows_moved(sink: Sink) -> None:
    slow = [sink.write(task, rows) for task, rows in enumerate(TASKS)]
    sink.run(MOVED)
    with pytest.raises(SinkError):
        sink.commit(slow)
    assert sink.read() == ROWS


def test_the_second_driver_commits_nothing_after_a_decision(sink: Sink) -> None:
    early = [sink.write(task, rows) for task, rows in enumerate(TASKS)]
    late = [sink.write(1, TASKS[1])]
    with pytest.raises(Fenced, match="the transactions of tasks 1 are lost"):
        sink.commit(early)
    late = [sink.write(0, TASKS[0]), *late, *(sink.write(task, TASKS[task]) for task in (2, 3))]
    assert [each.outcome for each in late] == [
        TaskOutcome.NONE,
        TaskOutcome.WRITTEN,
        TaskOutcome.SKIPPED,
        TaskOutcome.SKIPPED,
    ]
    sink.commit(late)
    assert sink.read() == ROWS


def test_a_batch_with_a_failed_task_is_aborted(sink: Sink) -> None:
    messages = [sink.write(task, rows) for task, rows in enumerate(TASKS)]
    sink.abort([*messages[:2], None, messages[3]])
    assert sink.read(to_the_end=False) == []
    sink.run(TASKS)
    assert sink.read() == ROWS


def test_a_decided_batch_is_not_aborted(sink: Sink, calls: Calls) -> None:
    messages = [sink.write(task, rows) for task, rows in enumerate(TASKS)]
    sink.commit(messages)
    sink.abort(messages)
    assert sink.read() == ROWS


def test_another_query_of_the_same_name_counts_its_own_batches(sink: Sink) -> None:
    sink.run([["a"], ["b"]], batch=7)
    sink.run([["c"], ["d"]], batch=0, query="other")
    assert sink.read() == ["a", "b", "c", "d"]


def test_a_checkpoint_that_is_older_than_the_topic_is_rejected(sink: Sink) -> None:
    sink.run([["a"], ["b"]], batch=7)
    with pytest.raises(SinkError, match="has already written batch 7, and got batch 6"):
        sink.run([["c"], ["d"]], batch=6)
    assert sink.read() == ["a", "b"]


def test_a_batch_without_rows_needs_no_transaction(sink: Sink) -> None:
    assert {each.outcome for each in sink.run([[], []])} == {TaskOutcome.NONE}
    sink.run(TASKS, batch=1)
    assert sink.read() == ROWS


def test_open_transactions_of_tasks_without_rows_are_aborted(sink: Sink) -> None:
    sink.write(5, ["half"])
    sink.run(TASKS)
    assert sink.read() == ROWS


# Offsets that are pending


def answer_first(monkeypatch: pytest.MonkeyPatch, group: str, codes: list[ErrorCode]) -> None:
    """Let the first answers about a group be as while its offsets are pending, or an error of a partition."""
    offsets = Groups.offsets

    async def answer(
        groups: Groups, name: str, partitions: Iterable[TopicPartition] | None = None, *, stable: bool = False
    ) -> dict[TopicPartition, OffsetAndMetadata | KafkaError]:
        if name != group or not codes:
            return await offsets(groups, name, partitions, stable=stable)
        code = codes.pop(0)
        is_seen = stable or code is not ErrorCode.UNSTABLE_OFFSET_COMMIT
        return {TopicPartition(TOPIC, 0): KafkaError(code, "not now")} if is_seen else {}

    monkeypatch.setattr(Groups, "offsets", answer)


def test_a_mark_that_is_pending_is_waited_for(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    sink.run([["a"]])
    answer_first(monkeypatch, f"{sink.name}.0", [ErrorCode.UNSTABLE_OFFSET_COMMIT] * 2)
    assert sink.write(0, ["a"]).outcome is TaskOutcome.SKIPPED
    assert sink.read() == ["a"]


def test_a_decision_that_is_pending_is_waited_for(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    sink.run(TASKS)
    answer_first(monkeypatch, sink.name, [ErrorCode.UNSTABLE_OFFSET_COMMIT] * 2)
    assert sink.write(1, TASKS[1]).outcome is TaskOutcome.DONE
    assert sink.read() == ROWS


def test_a_mark_that_cannot_be_read_is_an_error(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    sink.run([["a"]])
    answer_first(monkeypatch, f"{sink.name}.0", [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 9)
    with pytest.raises(KafkaError, match="not now"):
        sink.write(0, ["a"])
    assert sink.read() == ["a"]


def test_a_decision_whose_driver_died_before_its_commit_is_not_waited_for(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink.run(TASKS)
    messages = [sink.write(task, rows, batch=1) for task, rows in enumerate(TASKS)]

    async def die(*_: object, **__: object) -> None:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(TransactionalId, "end", die)
        with pytest.raises(Crash):
            sink.commit(messages)
    sink.run(TASKS, batch=1)
    assert sink.read() == sorted([*ROWS, *ROWS])
