"""The writers that Spark calls: in tasks to write, and in another process on the driver to commit or abort.

They communicate only through the commit messages.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from barnabas.base.clock import SystemClock
from barnabas.reading.option_values import OptionError
from pyspark_barnabas.delegation import task_login
from pyspark_barnabas.plain_errors import plain_errors
from pyspark_barnabas.runtime.gc_freeze import freeze_long_lived_objects
from pyspark_barnabas.sink.batch_committer import CARRIER, Committing
from pyspark_barnabas.sink.errors import SinkError
from pyspark_barnabas.sink.options import DeliveryGuarantee, SinkOptions, batch_options, stream_options
from pyspark_barnabas.sink.protocol import BatchId, Prepared
from pyspark_barnabas.sink.schema import check_schema
from pyspark_barnabas.sink.session import SinkClient
from pyspark_barnabas.sink.task_writer import TaskDone, TaskOutcome, TaskWriter, Work

#: Spark's task properties of a stream's batch.
BATCH_PROPERTY = "streaming.sql.batchId"
QUERY_PROPERTY = "sql.streaming.queryId"

Messages = Sequence[WriterCommitMessage | None]


def batch_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> "BatchQueryWriter":
    """Return the writer of `df.write`.

    :raises OptionError: For invalid options.
    :raises SinkError: For invalid columns, and for mode overwrite.
    """
    if overwrite:
        message = "mode overwrite is not supported: records of a topic are never replaced; use mode append"
        raise SinkError(message)
    if not options:
        message = (
            "there are no options. Spark does not pass the options of a table to a data source in Python when it is "
            "written to: use df.write.format('barnabas').mode('append') with options instead of INSERT INTO"
        )
        raise OptionError(message)
    parsed = batch_options(options)
    check_schema(schema, parsed)
    return BatchQueryWriter(_for_tasks(parsed))


def stream_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> "StreamWriter":
    """Return the writer of `df.writeStream`; Spark requests it once per micro-batch.

    :raises OptionError: For invalid options.
    :raises SinkError: For invalid columns, and for output mode complete.
    """
    if overwrite:
        message = "output mode complete is not supported: records of a topic are never replaced; use append or update"
        raise SinkError(message)
    parsed = stream_options(options)
    check_schema(schema, parsed)
    return StreamWriter(_for_tasks(parsed))


def _for_tasks(options: SinkOptions) -> SinkOptions:
    """Return the options that are sent to tasks: with `delegationTokens`, a token instead of the password.

    :raises KafkaError: If the broker refuses to create a token.
    """
    login = options.connection.login
    if login is None or not options.connection.delegation_tokens:
        return options
    with SinkClient(options) as client:
        token = client.run(task_login(client.cluster, login, SystemClock()))
    return replace(options, connection=options.connection.for_tasks(token))


class BatchQueryWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self.options = options
        self.sink = options.name or f"barnabas-spark-{uuid.uuid4().hex}"

    @plain_errors()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        batch = None if self.options.batch_id is None else BatchId("", self.options.batch_id)
        return _write(self.options, _work(self.sink, batch, _context()), iterator)

    @plain_errors()
    def commit(self, messages: Messages) -> None:
        commit_batch(self.options, messages)
        freeze_long_lived_objects()

    @plain_errors()
    def abort(self, messages: Messages) -> None:
        _abort(self.options, messages)


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self.options = options

    @plain_errors()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = _context()
        query, number = context.getLocalProperty(QUERY_PROPERTY), context.getLocalProperty(BATCH_PROPERTY)
        assert query, f"{QUERY_PROPERTY} is missing"
        assert number, f"{BATCH_PROPERTY} is missing"
        sink = self.options.name or f"barnabas-spark-{query}"
        return _write(self.options, _work(sink, BatchId(query, int(number)), context), iterator)

    @plain_errors()
    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        commit_batch(self.options, messages)

    @plain_errors()
    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        """Abort what tasks wrote, unless the decision to commit was made."""
        _abort(self.options, messages)


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "outside of a task"
    return context


def _work(sink: str, batch: BatchId | None, context: TaskContext) -> Work:
    # attempts of a stage that Spark repeats are numbered from 0 again
    attempt = context.taskAttemptId() if batch is None else context.attemptNumber()
    return Work(sink, batch, context.partitionId(), attempt)


def _write(options: SinkOptions, work: Work, batches: Iterable[pa.RecordBatch]) -> TaskDone:
    with SinkClient(options) as session:
        result = TaskWriter(session, work).write(batches)
    freeze_long_lived_objects()
    return result


def commit_batch(options: SinkOptions, messages: Messages) -> None:
    """Commit what tasks have written.

    :raises SinkError: If this is not possible.
    """
    results = _of_tasks(messages)
    prepared = _prepared(results)
    if options.delivery is DeliveryGuarantee.AT_LEAST_ONCE or not results:
        return
    work = results[0].work
    with SinkClient(options) as session:
        committing = Committing(session.cluster, work.sink, options.transaction_timeout_ms)
        if any(result.outcome is TaskOutcome.DONE for result in results):
            session.run(
                committing.abort(None, prepared)
            )  # written again by tasks that started before the decision was visible
        elif work.batch is None:
            session.run(committing.commit_plainly(prepared))
        else:
            skipped = [result.work.task for result in results if result.outcome is TaskOutcome.SKIPPED]
            topic = next((result.topic for result in results if result.topic), "")
            carrier = next(result.identity for result in results if result.work.task == CARRIER)
            assert carrier is not None
            session.run(committing.commit(work.batch, prepared, carrier, skipped, topic))


def _abort(options: SinkOptions, messages: Messages) -> None:
    results = _of_tasks(messages)
    prepared = _prepared(results)
    if options.delivery is DeliveryGuarantee.AT_LEAST_ONCE or not prepared:
        return
    work = results[0].work
    carriers = [
        Prepared(CARRIER, result.identity)
        for result in results
        if result.work.task == CARRIER and result.identity is not None and work.batch is not None
    ]
    with SinkClient(options) as session:
        committing = Committing(session.cluster, work.sink, options.transaction_timeout_ms)
        session.run(committing.abort(carriers[0] if carriers else None, prepared))


def _of_tasks(messages: Messages) -> list[TaskDone]:
    return [message for message in messages if isinstance(message, TaskDone)]


def _prepared(results: Iterable[TaskDone]) -> list[Prepared]:
    return [
        result.work.transaction(result.identity)
        for result in results
        if result.outcome is TaskOutcome.WRITTEN and result.identity is not None
    ]
