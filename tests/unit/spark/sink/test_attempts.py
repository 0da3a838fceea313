"""Attempts of one task that overlap: retries, copies of slow tasks (speculation), and attempts that fail."""

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pyarrow as pa
import pytest
from pyspark import TaskContext

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.group_messages import OffsetAndMetadata
from barnabas.client.admin.groups import Groups
from barnabas.client.blocking import BlockingClient
from barnabas.wire.errors import KafkaError
from pyspark_barnabas.sink import batch_committer, columns
from pyspark_barnabas.sink.errors import Fenced
from pyspark_barnabas.sink.protocol import BatchId
from pyspark_barnabas.sink.task_writer import TaskDone, TaskOutcome, Work
from pyspark_barnabas.sink.writers import _work
from support.spark_sink import QUERY, ROWS, TASKS, Sink, rows_of


@pytest.fixture
def pending(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Return an event that is set when a client has seen that an offset is pending."""
    seen, offsets = threading.Event(), Groups.offsets

    async def watched(
        groups: Groups, name: str, partitions: Iterable[TopicPartition] | None = None, *, stable: bool = False
    ) -> dict[TopicPartition, OffsetAndMetadata | KafkaError]:
        found = await offsets(groups, name, partitions, stable=stable)
        if any(isinstance(offset, KafkaError) for offset in found.values()):
            seen.set()
        return found

    monkeypatch.setattr(Groups, "offsets", watched)
    return seen


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


def test_a_copy_does_not_fence_an_attempt_that_has_written_all_rows(
    sink: Sink, pending: threading.Event, thread: ThreadPoolExecutor
) -> None:
    first = [sink.write(task, rows) for task, rows in enumerate(TASKS)]
    copy = thread.submit(sink.write, 1, TASKS[1], attempt=1)
    assert pending.wait(30)
    sink.commit(first)
    assert copy.result(30).outcome in (TaskOutcome.SKIPPED, TaskOutcome.DONE)
    assert sink.read() == ROWS


def test_a_copy_writes_the_rows_if_the_attempt_that_had_written_them_is_aborted(
    sink: Sink, pending: threading.Event, thread: ThreadPoolExecutor
) -> None:
    first = sink.write(0, ["a"])
    copy = thread.submit(sink.write, 0, ["a"], attempt=1)
    assert pending.wait(30)
    sink.abort([first])
    sink.commit([copy.result(30)])
    assert sink.read() == ["a"]


def test_an_attempt_does_not_fence_a_copy_that_has_written_all_rows(
    sink: Sink, pending: threading.Event, thread: ThreadPoolExecutor
) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        started.set()
        assert copied.wait(30)
        yield rows_of(["a"])

    started, copied = threading.Event(), threading.Event()
    first = thread.submit(sink.attempt, Work(sink.name, BatchId(QUERY, 0), 0), rows())
    assert started.wait(30)
    copy = sink.write(0, ["a"], attempt=1)
    copied.set()
    assert pending.wait(30)
    sink.commit([copy])
    assert first.result(30).outcome is TaskOutcome.SKIPPED
    assert sink.read() == ["a"]


def test_the_attempts_of_an_earlier_run_are_not_waited_for(sink: Sink, pending: threading.Event) -> None:
    dead = sink.write(0, ["a"])
    repeated = sink.write(0, ["a"])
    assert pending.is_set()
    with pytest.raises(Fenced):
        sink.commit([dead])
    sink.commit([repeated])
    assert sink.read() == ["a"]


def test_a_retry_waits_for_a_limited_time(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_committer, "_ACCEPTED_WITHIN_MS", 0)
    lost = sink.write(0, ["a"])
    retried = sink.write(0, ["a"], attempt=1)
    with pytest.raises(Fenced):
        sink.commit([lost])
    sink.commit([retried])
    assert sink.read() == ["a"]


@pytest.mark.parametrize("accepted", [0, 1], ids=["the first attempt", "its copy"])
def test_rows_that_cannot_be_repeated_come_from_the_attempt_that_spark_has_accepted(
    sink: Sink, accepted: int
) -> None:
    attempts = [sink.attempt(Work(sink.name, None, 0, attempt), [rows_of(["a"])]) for attempt in range(2)]
    other = sink.attempt(Work(sink.name, None, 1), [rows_of(["b"])])
    sink.commit([attempts[accepted], other])
    assert sink.read() == ["a", "b"]


def test_attempts_of_a_repeated_stage_do_not_fence_each_other(sink: Sink) -> None:
    """Spark repeats a stage if shuffled rows are lost, and accepts attempts of the first one that still end."""

    def write(task_attempt: int) -> TaskDone:
        context = Mock(TaskContext)
        context.partitionId.return_value, context.attemptNumber.return_value = 1, 0
        context.taskAttemptId.return_value = task_attempt
        return sink.attempt(_work(sink.name, None, context), [rows_of(["a", "b"])])

    accepted, _ = write(7), write(9)
    sink.commit([accepted])
    assert sink.read() == ["a", "b"]


@pytest.mark.parametrize("batch", [None, BatchId(QUERY, 0)], ids=["rows that cannot be repeated", "a batch"])
def test_an_attempt_that_fails_aborts_its_transaction(
    sink: Sink, monkeypatch: pytest.MonkeyPatch, batch: BatchId | None
) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield rows_of(["a"])
        assert ongoing(sink) == [f"{sink.name}.0"]
        raise EOFError("the input is closed")

    monkeypatch.setattr(columns, "_GROUP_BYTES", 1)
    with pytest.raises(EOFError):
        sink.attempt(Work(sink.name, batch, 0), rows())
    assert ongoing(sink) == []
    assert sink.read() == []


def ongoing(sink: Sink) -> list[str]:
    with BlockingClient(sink.bootstrap) as client:
        return [
            listed.transactional_id
            for listed in client.transactions.list(["Ongoing"], pattern=f"{sink.name}.*")
        ]
