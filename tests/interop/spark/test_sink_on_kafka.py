"""The Spark sink's protocol on Apache Kafka: crashes, repetitions, competing drivers."""

from collections.abc import Iterator

import pytest
from interop.brokers import Broker

from pyspark_barnabas.sink.errors import RowsMoved, SinkError
from pyspark_barnabas.sink.task_writer import TaskOutcome
from support.spark_sink import MOVED, ROWS, TASKS, Calls, Sink, counted_calls, crash, moments


@pytest.fixture
def calls() -> Iterator[Calls]:
    with counted_calls() as counting:
        yield counting


@pytest.fixture
def sink(kafka: Broker) -> Sink:
    return Sink(kafka.bootstrap)


def test_a_batch_is_written_once_however_often_it_is_repeated(sink: Sink) -> None:
    sink.run(TASKS)
    assert {each.outcome for each in sink.run(TASKS)} == {TaskOutcome.DONE}
    sink.run([["g"], ["h"]], batch=1)
    assert sink.read() == [*ROWS, "g", "h"]


@pytest.mark.parametrize("again", [TASKS, MOVED], ids=["same-tasks", "other-tasks"])
def test_a_batch_is_written_once_wherever_its_driver_dies(
    kafka: Broker, calls: Calls, again: list[list[str]]
) -> None:
    for at in moments(kafka.bootstrap, calls):
        sink = Sink(kafka.bootstrap)
        crash(sink, calls, at)
        sink.run(again)
        assert sink.read() == ROWS, f"call {at}"


@pytest.mark.parametrize("again", [TASKS, MOVED], ids=["same-tasks", "other-tasks"])
def test_lost_transactions_are_written_again_or_rejected_but_never_twice(
    kafka: Broker, calls: Calls, again: list[list[str]]
) -> None:
    refused = 0
    for at in moments(kafka.bootstrap, calls):
        sink = Sink(kafka.bootstrap)
        crash(sink, calls, at)
        sink.lose(1, 3)
        try:
            sink.run(again)
        except RowsMoved:
            refused += 1
            found = sink.read(to_the_end=False)
            assert len(set(found)) == len(found) < len(ROWS)
        else:
            assert sink.read() == ROWS, f"call {at}"
    assert (refused > 0) is (again is MOVED)


def test_one_of_two_drivers_with_the_same_batch_commits(sink: Sink) -> None:
    slow = [sink.write(task, rows) for task, rows in enumerate(TASKS)]
    sink.run(MOVED)
    with pytest.raises(SinkError):
        sink.commit(slow)
    sink.abort(slow)
    assert sink.read() == ROWS


def test_a_batch_with_a_failed_task_is_aborted(sink: Sink) -> None:
    messages = [sink.write(task, rows) for task, rows in enumerate(TASKS)]
    sink.abort([*messages[:2], None, messages[3]])
    sink.run(TASKS)
    assert sink.read() == ROWS
