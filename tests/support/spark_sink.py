"""The sink's protocol without Spark: batches as Spark runs and repeats them, and crashes at chosen calls."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.admin.offsets import EARLIEST
from barnabas.client.blocking import BlockingClient
from barnabas.client.core.cluster import ClusterClient
from barnabas.wire.isolation import Isolation
from pyspark_barnabas.sink.batch_committer import Committing
from pyspark_barnabas.sink.options import SinkOptions, stream_options
from pyspark_barnabas.sink.protocol import BatchId
from pyspark_barnabas.sink.session import SinkClient
from pyspark_barnabas.sink.task_writer import TaskDone, TaskWriter, Work
from pyspark_barnabas.sink.writers import StreamWriter, commit_batch
from support.waiting import until

QUERY = "0b5c"
#: Rows of each task; the first has none, which shows what it does for the other tasks.
TASKS: Sequence[Sequence[str]] = ([], ["a", "b"], ["c"], ["d", "e", "f"])
MOVED: Sequence[Sequence[str]] = (["a", "b", "c", "d"], [], ["e", "f"])
ROWS = sorted(row for rows in TASKS for row in rows)


class Crash(Exception):
    """The process was killed."""


class Calls:
    """Counts calls to the cluster, and crashes at one of them."""

    def __init__(self) -> None:
        self.count = 0
        self.crash_at: int | None = None
        self.crash_after = False  #: whether the broker still receives that call

    def wrap(self, send: Callable[..., Any]) -> Callable[..., Any]:
        async def counted(cluster: ClusterClient, *args: Any, **kwargs: Any) -> Any:
            self.count += 1
            if self.crash_at is None or self.count < self.crash_at:
                return await send(cluster, *args, **kwargs)
            if self.count == self.crash_at and self.crash_after:
                await send(cluster, *args, **kwargs)
            raise Crash

        return counted


@contextmanager
def counted_calls() -> Iterator[Calls]:
    """Count all calls of clients in this process from now on."""
    calls = Calls()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClusterClient, "send", calls.wrap(ClusterClient.send))
        yield calls


class Sink:
    """The calls that Spark makes to a sink."""

    numbers = iter(range(1_000_000))

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.further: dict[str, str] = {}  #: options of the writer
        self.topic = f"sink-out-{next(self.numbers)}"
        self.name = f"sink-{self.topic}"
        with BlockingClient(bootstrap) as client:
            raise_errors(client.admin.create_topics([NewTopic(self.topic, 2)]).values())

    @property
    def options(self) -> SinkOptions:
        given = {"kafka.bootstrap.servers": self.bootstrap, "topic": self.topic, "sinkName": self.name}
        return stream_options({**given, **self.further})

    def write(
        self, task: int, rows: Sequence[str], batch: int = 0, query: str = QUERY, *, attempt: int = 0
    ) -> TaskDone:
        """Run one attempt of one task."""
        return self.attempt(Work(self.name, BatchId(query, batch), task, attempt), [rows_of(rows)])

    def attempt(self, work: Work, batches: Iterable[pa.RecordBatch]) -> TaskDone:
        with SinkClient(self.options) as session:
            return TaskWriter(session, work).write(batches)

    def commit(self, messages: Sequence[TaskDone | None]) -> None:
        commit_batch(self.options, messages)

    def abort(self, messages: Sequence[TaskDone | None]) -> None:
        StreamWriter(self.options).abort(messages, 0)

    def run(self, tasks: Sequence[Sequence[str]], batch: int = 0, query: str = QUERY) -> list[TaskDone]:
        """Run a whole batch; return the tasks' commit messages."""
        messages = [self.write(task, rows, batch, query) for task, rows in enumerate(tasks)]
        self.commit(messages)
        return messages

    def lose(self, *tasks: int) -> None:
        """Abort the transactions of these tasks, as a timeout does."""
        with SinkClient(self.options) as session:
            committing = Committing(session.cluster, self.name, 1_000)
            for task in tasks:
                session.run(committing.fence(task))

    def read(self, *, to_the_end: bool = True) -> list[str]:
        """Return all values, read committed; `to_the_end` fails if a transaction stays open."""
        partitions = [TopicPartition(self.topic, index) for index in range(2)]
        starts = dict.fromkeys(partitions, EARLIEST)
        with BlockingClient(self.bootstrap) as client:
            if to_the_end:
                until(lambda: not any(open_transactions(client, tp) for tp in partitions))
            consumer = client.consumer(starts, stop_at_end=True, isolation=Isolation.READ_COMMITTED)
            return sorted((record.value or b"").decode() for record in consumer)


def rows_of(rows: Sequence[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(rows, pa.string())})


def open_transactions(client: BlockingClient, tp: TopicPartition) -> list[int]:
    producers = client.transactions.producers(tp)
    return [each.producer_id for each in producers if each.transaction_start_offset is not None]


def crash(sink: Sink, calls: Calls, at: int, *, after: bool = True) -> None:
    """Run the batch and crash at a call."""
    calls.count, calls.crash_at, calls.crash_after = 0, at, after
    with suppress(Crash):
        sink.run(TASKS)
    calls.crash_at = None


def moments(bootstrap: str, calls: Calls) -> list[int]:
    """Choose calls to crash at: some of the tasks', and all of the commit's."""
    sink = Sink(bootstrap)
    calls.count = 0
    messages = [sink.write(task, rows) for task, rows in enumerate(TASKS)]
    of_tasks = calls.count
    sink.commit(messages)
    return [*range(3, of_tasks, 9), *range(of_tasks, calls.count + 2)]
