"""Runs a task: checks whether its rows are already committed, and writes them if not."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from barnabas.base.ids import ProducerIdAndEpoch, TopicPartition
from barnabas.client.producer.batch_sender import BatchSender, Encoded
from barnabas.client.producer.transaction_requests import idempotent_identity
from barnabas.wire.records.arrow_rows import Columns
from barnabas.wire.records.batch import SEQUENCE_LIMIT
from pyspark_barnabas.sink.batch_committer import CARRIER, Committing, moved_message
from pyspark_barnabas.sink.columns import Rows, grouped, read_rows
from pyspark_barnabas.sink.encoding import Encoder, RowEncoder
from pyspark_barnabas.sink.errors import RowsMoved
from pyspark_barnabas.sink.fingerprints import fingerprint
from pyspark_barnabas.sink.options import DeliveryGuarantee
from pyspark_barnabas.sink.partitioning import Longs, Partitioner
from pyspark_barnabas.sink.protocol import NO_ROWS, BatchId, Fingerprint, Prepared, TaskCommit, task_name
from pyspark_barnabas.sink.session import SinkClient

#: Short integers are sorted much faster.
_SHORT = np.int16
_SHORT_MAX = np.iinfo(_SHORT).max


class TaskOutcome(Enum):
    """The outcome of a task."""

    WRITTEN = "written"  #: a transaction must be committed, or nothing is left to do
    NONE = "none"  #: no rows
    SKIPPED = "skipped"  #: the rows were committed before
    DONE = "done"  #: the whole batch was committed before


class Work(NamedTuple):
    """The task's sink, batch and options."""

    sink: str  #: empty for delivery without transactions
    batch: BatchId | None  #: None for rows that cannot be repeated
    task: int
    #: Higher for retries, and for copies of a task that is slow (speculation); unique for rows that cannot be repeated.
    attempt: int = 0

    def transaction(self, identity: ProducerIdAndEpoch) -> Prepared:
        """Return the transaction of this attempt."""
        return Prepared(self.task, identity, self.id_attempt)

    @property
    def id_attempt(self) -> int:
        """The attempt in the transactional id: 0 for rows that can be repeated, whose attempts fence each other."""
        return self.attempt if self.batch is None else 0


@dataclass(frozen=True)
class TaskDone(WriterCommitMessage):
    """The result of a task for the driver."""

    work: Work
    outcome: TaskOutcome
    rows_count: int = 0
    identity: ProducerIdAndEpoch | None = None  #: of its transaction
    topic: str | None = None  #: one that it wrote to


class TaskWriter:
    """Writes the rows of one task."""

    def __init__(self, session: SinkClient, work: Work) -> None:
        self._session = session
        self._options = session.options
        self._work = work
        self._committing = Committing(session.cluster, work.sink, self._options.transaction_timeout_ms)
        self._rows = NO_ROWS

    def write(self, batches: Iterable[pa.RecordBatch]) -> TaskDone:
        """Write all rows, unless they are already committed.

        :raises SinkError: For invalid rows.
        :raises KafkaError: What the cluster refuses.
        """
        groups = grouped(batches)
        if self._options.delivery is DeliveryGuarantee.AT_LEAST_ONCE:
            return self._write_plainly(next(groups, None), groups)
        if self._work.batch is not None:
            return self._write_batch(self._work.batch, groups)
        first = next(groups, None)
        if first is None:
            return TaskDone(self._work, TaskOutcome.NONE)
        return self._write_in_transaction(self._fence(), first, groups)

    def _write_batch(self, batch: BatchId, groups: Iterator[pa.RecordBatch]) -> TaskDone:
        session, committing, task = self._session, self._committing, self._work.task
        described = session.start(committing.identity_of(task))
        first = next(groups, None)  # may take long enough for a copy of this task to write all rows
        at_start = described.result()
        if session.run(committing.recover(batch)):
            return TaskDone(self._work, TaskOutcome.DONE)
        if first is None and task != CARRIER:
            return TaskDone(self._work, TaskOutcome.NONE)
        of_earlier_run = None if self._work.attempt else at_start
        session.run(committing.wait_for_other_attempt(task, of_earlier_run))
        identity = self._fence()
        mark = session.run(committing.mark_of(task, batch))
        if mark is not None:
            return self._compare(mark, identity, first, groups)
        if first is None:
            return TaskDone(self._work, TaskOutcome.NONE, identity=identity)
        return self._write_in_transaction(identity, first, groups)

    def _fence(self) -> ProducerIdAndEpoch:
        return self._session.run(self._committing.fence(self._work.task, self._work.id_attempt))

    def _write_plainly(self, first: pa.RecordBatch | None, groups: Iterator[pa.RecordBatch]) -> TaskDone:
        if first is None:
            return TaskDone(self._work, TaskOutcome.NONE)
        identity = (
            self._session.run(idempotent_identity(self._session.cluster))
            if self._options.acks == -1
            else None
        )
        topic = self._send(identity, first, groups)
        return TaskDone(self._work, TaskOutcome.WRITTEN, self._rows.rows_count, topic=topic)

    def _write_in_transaction(
        self, identity: ProducerIdAndEpoch, first: pa.RecordBatch, groups: Iterator[pa.RecordBatch]
    ) -> TaskDone:
        try:
            topic = self._send(identity, first, groups)
            if self._work.batch is not None:
                mark = TaskCommit(self._work.batch, self._rows)
                self._session.run(self._committing.put_mark(self._work.task, identity, mark, topic))
        except BaseException:
            self._session.run(self._committing.abandon(self._work.transaction(identity)))
            raise
        return TaskDone(self._work, TaskOutcome.WRITTEN, self._rows.rows_count, identity, topic)

    def _compare(
        self,
        mark: TaskCommit,
        identity: ProducerIdAndEpoch,
        first: pa.RecordBatch | None,
        groups: Iterator[pa.RecordBatch],
    ) -> TaskDone:
        """Compare the committed rows with the current ones."""
        for batch in _chained(first, groups):
            self._count(read_rows(batch, self._options).columns)
        if mark.rows != self._rows:
            what = (
                f"task {self._work.task} had {mark.rows.rows_count} rows and has {self._rows.rows_count} now"
            )
            if mark.rows.rows_count == self._rows.rows_count:
                what = f"task {self._work.task} has other rows than it had"
            raise RowsMoved(moved_message(self._work.sink, mark.batch, what))
        return TaskDone(self._work, TaskOutcome.SKIPPED, self._rows.rows_count, identity)

    def _count(self, columns: Columns) -> None:
        self._rows = self._rows.plus(fingerprint(columns.keys, columns.values))

    def _send(
        self, identity: ProducerIdAndEpoch | None, first: pa.RecordBatch, groups: Iterator[pa.RecordBatch]
    ) -> str:
        """Produce all rows and wait until they are stored; return one of their topics."""
        transactional = self._options.delivery is DeliveryGuarantee.EXACTLY_ONCE
        name = task_name(self._work.sink, self._work.task, self._work.id_attempt) if transactional else None
        sender = BatchSender(
            self._session.cluster,
            transactional_id=name,
            acks=self._options.acks,
            buffer_size_bytes=self._options.buffer_bytes,
            request_size_bytes_max=self._options.request_bytes_max,
            delivery_timeout_ms=self._options.delivery_timeout_ms,
        )
        self._session.run(sender.__aenter__())
        try:
            sending = _RowSender(self._session, sender, identity, self._committing, self._work)
            for batch in _chained(first, groups):
                rows = read_rows(batch, self._options)
                if self._work.batch is not None:
                    self._count(rows.columns)
                else:
                    self._rows = self._rows.plus(Fingerprint(batch.num_rows, 0))
                sending.put(rows)
            self._session.run(sender.flush())
        finally:
            self._session.run(sender.__aexit__(None, None, None))
        return sending.topic


class _RowSender:
    """Assigns rows to partitions and passes them to the sender."""

    def __init__(
        self,
        session: SinkClient,
        sender: BatchSender,
        identity: ProducerIdAndEpoch | None,
        committing: Committing,
        work: Work,
    ) -> None:
        options = session.options
        self._session = session
        self._sender = sender
        self._identity = identity
        self._transactional = options.delivery is DeliveryGuarantee.EXACTLY_ONCE
        self._committing = committing
        self._work = work
        self._encoder = Encoder(identity, self._transactional, options.compression, options.batch_bytes)
        self._partitioner = Partitioner(options.batch_bytes, Random(os.urandom(8)))
        self._sequences: dict[TopicPartition, int] = {}
        self.topic = ""

    def put(self, rows: Rows) -> None:
        """Encode rows and pass them to the sender."""
        encoder = self._encoder.of(rows.columns)
        batches = [
            encoded
            for topic, chosen in rows.topics
            for encoded in self._batches_for(topic, rows, chosen, encoder)
        ]
        self._session.run(self._sender.put(batches))

    def _batches_for(
        self, topic: str, rows: Rows, chosen: Longs | None, encoder: RowEncoder
    ) -> Iterator[tuple[TopicPartition, Encoded]]:
        self.topic = self.topic or topic
        count = len(self._session.topic(topic).partitions)
        keys, sizes = _only(rows.columns.keys, chosen), rows.sizes if chosen is None else rows.sizes[chosen]
        partitions = self._partitioner.choose(topic, count, _only(rows.asked, chosen), keys, sizes)
        order = np.argsort(partitions.astype(_SHORT if count <= _SHORT_MAX else np.int64), kind="stable")
        indexes, starts = np.unique(partitions[order], return_index=True)
        order = order if chosen is None else chosen[order]
        topic_partitions = [TopicPartition(topic, index) for index in indexes.tolist()]
        self._take_in(topic_partitions)
        for tp, start, end in zip(topic_partitions, starts, [*starts[1:], len(order)], strict=True):
            sequence = self._sequences[tp]
            for encoded, records in encoder.batches(order[start:end], sequence):
                sequence = (sequence + records) % SEQUENCE_LIMIT
                yield tp, encoded
            self._sequences[tp] = sequence

    def _take_in(self, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions to the transaction before the first write to them."""
        fresh = [tp for tp in partitions if tp not in self._sequences]
        if fresh and self._transactional and self._identity is not None:
            self._session.run(self._committing.add_partitions(self._work.transaction(self._identity), fresh))
        self._sequences.update(dict.fromkeys(fresh, 0))


def _only(column: pa.Array | None, chosen: Longs | None) -> pa.Array | None:
    return column if column is None or chosen is None else column.take(pa.array(chosen))


def _chained(first: pa.RecordBatch | None, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if first is not None:
        yield first
        yield from rest
