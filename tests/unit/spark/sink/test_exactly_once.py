"""The sink's protocol on a broker in this process: crashes at every call, then the batch again, as Spark repeats it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking import Client
from barnabas.client.cluster import Cluster
from barnabas.client.offsets import EARLIEST, Isolation
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.sink.committing import Committing
from pyspark_barnabas.sink.errors import Fenced, RowsMoved, SinkError
from pyspark_barnabas.sink.options import SinkOptions, stream_options
from pyspark_barnabas.sink.protocol import BatchId
from pyspark_barnabas.sink.session import Session
from pyspark_barnabas.sink.writers import StreamWriter
from pyspark_barnabas.sink.writing import Outcome, TaskDone, TaskWriter, Work
from support.waiting import until

QUERY = "0b5c"
SETTINGS = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
#: Rows of each task; the first has none, so what it does for the others' sake is seen.
TASKS: Sequence[Sequence[str]] = ([], ["a", "b"], ["c"], ["d", "e", "f"])
MOVED: Sequence[Sequence[str]] = (["a", "b", "c", "d"], [], ["e", "f"])
ROWS = sorted(row for rows in TASKS for row in rows)


class Crash(Exception):
    """The process is gone."""


class Calls:
    """Counts what is asked of the cluster, and crashes at one of the calls."""

    def __init__(self) -> None:
        self.count = 0
        self.crash_at: int | None = None
        self.crash_after = False  #: whether the broker still gets that call

    def wrap(self, send: Callable[..., Any]) -> Callable[..., Any]:
        async def counted(cluster: Cluster, *args: Any, **kwargs: Any) -> Any:
            self.count += 1
            if self.crash_at is None or self.count < self.crash_at:
                return await send(cluster, *args, **kwargs)
            if self.count == self.crash_at and self.crash_after:
                await send(cluster, *args, **kwargs)
            raise Crash

        return counted


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(SETTINGS) as running:
        yield running


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    counting = Calls()
    monkeypatch.setattr(Cluster, "send", counting.wrap(Cluster.send))
    return counting


class Sink:
    """What Spark does with one, without Spark."""

    numbers = iter(range(1_000_000))

    def __init__(self, broker: EmbeddedBroker) -> None:
        self.broker = broker
        self.topic = f"out-{next(self.numbers)}"
        self.name = f"sink-{self.topic}"
        broker.create_topic(self.topic, 2)

    @property
    def options(self) -> SinkOptions:
        given = {"kafka.bootstrap.servers": self.broker.bootstrap, "topic": self.topic, "sinkName": self.name}
        return stream_options(given)

    def write(self, task: int, rows: Sequence[str], batch: int = 0, query: str = QUERY) -> TaskDone:
        """One attempt of one task."""
        table = pa.RecordBatch.from_pydict({"value": pa.array(rows, pa.string())})
        with Session(self.options) as session:
            return TaskWriter(session, Work(self.name, BatchId(query, batch), task)).write([table])

    def commit(self, messages: Sequence[TaskDone | None]) -> None:
        StreamWriter(self.options).commit(messages, 0)

    def abort(self, messages: Sequence[TaskDone | None]) -> None:
        StreamWriter(self.options).abort(messages, 0)

    def run(self, tasks: Sequence[Sequence[str]], batch: int = 0, query: str = QUERY) -> list[TaskDone]:
        """A whole batch; gives what the tasks said."""
        messages = [self.write(task, rows, batch, query) for task, rows in enumerate(tasks)]
        self.commit(messages)
        return messages

    def lose(self, *tasks: int) -> None:
        """As if the transactions of these tasks had timed out."""
        with Session(self.options) as session:
            committing = Committing(session.cluster, self.name, 1_000)
            for task in tasks:
                session.run(committing.fence(task))

    def read(self, *, to_the_end: bool = True) -> list[str]:
        """All values, read committed; `to_the_end` fails where a transaction stays open."""
        places = [TopicPartition(self.topic, index) for index in range(2)]
        starts = dict.fromkeys(places, EARLIEST)
        with Client(self.broker.bootstrap) as client:
            if to_the_end:
                until(lambda: not any(open_transactions(client, place) for place in places))
            consumer = client.consumer(starts, stop_at_end=True, isolation=Isolation.READ_COMMITTED)
            return sorted((record.value or b"").decode() for record in consumer)


def open_transactions(client: Client, place: TopicPartition) -> list[int]:
    producers = client.transactions.producers(place)
    return [each.producer_id for each in producers if each.transaction_start_offset is not None]


@pytest.fixture
def sink(broker: EmbeddedBroker) -> Sink:
    return Sink(broker)


def crash(sink: Sink, calls: Calls, at: int, *, after: bool = True) -> None:
    """Run the batch and die at a call."""
    calls.count, calls.crash_at, calls.crash_after = 0, at, after
    with suppress(Crash):
        sink.run(TASKS)
    calls.crash_at = None


def moments(broker: EmbeddedBroker, calls: Calls) -> list[int]:
    """Calls to crash at: some of the tasks', and all of the commit's."""
    sink = Sink(broker)
    calls.count = 0
    messages = [sink.write(task, rows) for task, rows in enumerate(TASKS)]
    of_tasks = calls.count
    sink.commit(messages)
    return [*range(3, of_tasks, 9), *range(of_tasks, calls.count + 2)]


def test_a_batch_is_written_once_and_the_next_follows(sink: Sink) -> None:
    assert {each.outcome for each in sink.run(TASKS)} == {Outcome.NONE, Outcome.WRITTEN}
    assert sink.read() == ROWS
    assert {each.outcome for each in sink.run(TASKS)} == {Outcome.DONE}
    assert sink.read() == ROWS
    sink.run([["g"], ["h"]], batch=1)
    assert sink.read() == [*ROWS, "g", "h"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_wherever_a_driver_dies_its_batch_is_written_once_when_it_comes_again(
    broker: EmbeddedBroker, calls: Calls, after: bool
) -> None:
    for at in moments(broker, calls):
        sink = Sink(broker)
        crash(sink, calls, at, after=after)
        sink.run(TASKS)
        assert sink.read() == ROWS, f"call {at}"


def test_wherever_a_driver_dies_twice_its_batch_is_written_once(broker: EmbeddedBroker, calls: Calls) -> None:
    of_commit = moments(broker, calls)[-8:]
    for first, second in zip(of_commit, range(2, 60, 7), strict=False):
        sink = Sink(broker)
        crash(sink, calls, first)
        crash(sink, calls, second)
        sink.run(TASKS)
        assert sink.read() == ROWS, f"calls {first} and {second}"


def test_rows_that_come_again_in_other_tasks_are_written_once(broker: EmbeddedBroker, calls: Calls) -> None:
    for at in moments(broker, calls):
        sink = Sink(broker)
        crash(sink, calls, at)
        sink.run(MOVED)
        assert sink.read() == ROWS, f"call {at}"


@pytest.mark.parametrize("lost", [(2,), (1, 2, 3)], ids=["one", "all"])
def test_transactions_that_are_lost_after_the_decision_are_written_anew(
    broker: EmbeddedBroker, calls: Calls, lost: tuple[int, ...]
) -> None:
    for at in moments(broker, calls):
        sink = Sink(broker)
        crash(sink, calls, at)
        sink.lose(*lost)
        sink.run(TASKS)
        assert sink.read() == ROWS, f"call {at}"


@pytest.mark.parametrize("lost", [(1,), (1, 3)], ids=["one", "two"])
def test_lost_transactions_and_moved_rows_fail_rather_than_write_twice(
    broker: EmbeddedBroker, calls: Calls, lost: tuple[int, ...]
) -> None:
    failures = 0
    for at in moments(broker, calls):
        sink = Sink(broker)
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


def test_a_task_that_is_tried_again_fences_off_the_attempt_before(sink: Sink) -> None:
    first = sink.write(0, ["a"])
    second = sink.write(0, ["a"])
    with pytest.raises(Fenced, match=r"batch 0 of .* is not committed: task 0 was fenced off"):
        sink.commit([first])
    assert sink.read(to_the_end=False) == []
    sink.commit([second])
    assert sink.read() == ["a"]


def test_of_two_drivers_with_one_batch_one_commits(sink: Sink) -> None:
    slow = [sink.write(task, rows) for task, rows in enumerate(TASKS)]
    quick = [sink.write(task, rows) for task, rows in enumerate(TASKS)]
    with pytest.raises(Fenced):
        sink.commit(slow)
    sink.commit(quick)
    assert sink.read() == ROWS
    sink.abort(slow)
    assert sink.read() == ROWS


def test_a_driver_whose_tasks_were_fenced_cannot_decide_though_rows_moved(sink: Sink) -> None:
    slow = [sink.write(task, rows) for task, rows in enumerate(TASKS)]
    sink.run(MOVED)
    with pytest.raises(SinkError):
        sink.commit(slow)
    assert sink.read() == ROWS


def test_a_driver_that_decided_first_leaves_nothing_to_the_other(sink: Sink) -> None:
    early = [sink.write(task, rows) for task, rows in enumerate(TASKS)]
    late = [sink.write(1, TASKS[1])]
    with pytest.raises(Fenced, match="the transactions of tasks 1 are lost"):
        sink.commit(early)
    late = [sink.write(0, TASKS[0]), *late, *(sink.write(task, TASKS[task]) for task in (2, 3))]
    assert [each.outcome for each in late] == [
        Outcome.NONE,
        Outcome.WRITTEN,
        Outcome.SKIPPED,
        Outcome.SKIPPED,
    ]
    sink.commit(late)
    assert sink.read() == ROWS


def test_a_batch_of_which_a_task_fails_is_aborted(sink: Sink) -> None:
    messages = [sink.write(task, rows) for task, rows in enumerate(TASKS)]
    sink.abort([*messages[:2], None, messages[3]])
    assert sink.read(to_the_end=False) == []
    sink.run(TASKS)
    assert sink.read() == ROWS


def test_a_batch_that_is_decided_is_not_aborted_any_more(sink: Sink, calls: Calls) -> None:
    messages = [sink.write(task, rows) for task, rows in enumerate(TASKS)]
    sink.commit(messages)
    sink.abort(messages)
    assert sink.read() == ROWS


def test_another_query_with_the_same_name_counts_its_own_batches(sink: Sink) -> None:
    sink.run([["a"], ["b"]], batch=7)
    sink.run([["c"], ["d"]], batch=0, query="other")
    assert sink.read() == ["a", "b", "c", "d"]


def test_a_checkpoint_that_is_older_than_the_topic_is_refused(sink: Sink) -> None:
    sink.run([["a"], ["b"]], batch=7)
    with pytest.raises(SinkError, match="has seen batch 7 already, and is asked for batch 6"):
        sink.run([["c"], ["d"]], batch=6)
    assert sink.read() == ["a", "b"]


def test_a_batch_without_rows_needs_no_transaction(sink: Sink) -> None:
    assert {each.outcome for each in sink.run([[], []])} == {Outcome.NONE}
    sink.run(TASKS, batch=1)
    assert sink.read() == ROWS


def test_what_tasks_without_rows_left_open_before_is_aborted(sink: Sink) -> None:
    sink.write(5, ["half"])
    sink.run(TASKS)
    assert sink.read() == ROWS
