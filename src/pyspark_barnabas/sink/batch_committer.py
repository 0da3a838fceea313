"""Requests to the cluster: read marks and decisions, end transactions."""

import asyncio
import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from barnabas.base.ids import ProducerIdAndEpoch, TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.group_messages import OffsetAndMetadata
from barnabas.client.admin.groups import Groups
from barnabas.client.admin.transactions import TransactionDescription, Transactions
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.producer.transaction_requests import TransactionalId
from barnabas.wire.errors import ErrorCode, KafkaError
from pyspark_barnabas.sink.bookkeeping import REFUSED, TOPIC, bookkeeping_topic
from pyspark_barnabas.sink.errors import Fenced, RowsMoved, SinkError
from pyspark_barnabas.sink.protocol import (
    BatchId,
    CommitDecision,
    Prepared,
    TaskCommit,
    find_mark,
    is_task_name,
    newest_batch,
    task_name,
)

#: The task whose transaction commits the decision.
CARRIER = 0

#: The state of a transaction that may still be committed or aborted, and those of one that is ending.
_OPEN = "Ongoing"
_ENDING = frozenset({"PrepareCommit", "PrepareAbort"})

#: How long offsets may be pending after their transaction has ended: Kafka before 4.0 applies the end to the group a
#: moment after it has reported it.
_PENDING_MS_MAX = 10_000

#: How long an attempt of a task waits while another one has written all rows: until Spark has killed the waiting one,
#: which takes some seconds. It waits in vain if the other one was lost with its executor just then.
_ACCEPTED_WITHIN_MS = 30_000

_ABANDON_S_MAX = 5

#: Errors which say that the transaction of a producer id and epoch cannot be ended, now or ever.
GONE = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
    }
)


class Committing:
    """The batches of one sink on the given cluster; keeps no state."""

    def __init__(self, cluster: ClusterClient, sink: str, timeout_ms: int) -> None:
        """:param timeout_ms: The broker aborts a transaction that is open for longer."""
        self.cluster = cluster
        self.sink = sink
        self.timeout_ms = timeout_ms

    async def fence(self, task: int, attempt: int = 0) -> ProducerIdAndEpoch:
        """Return a producer id and epoch for a task's transaction; earlier writers of the task cannot commit any
        more.

        :param attempt: Part of the transactional id of a batch that cannot be repeated.
        """
        return await self._id(task, attempt).initialize(self.timeout_ms)

    async def identity_of(self, task: int) -> ProducerIdAndEpoch | None:
        """Return the newest producer id and epoch of a task; None if its transactional id does not exist."""
        description = await self._described(task)
        return description and ProducerIdAndEpoch(description.producer_id, description.producer_epoch)

    async def wait_for_other_attempt(self, task: int, of_earlier_run: ProducerIdAndEpoch | None) -> None:
        """Wait while another attempt has written all rows and its mark, and is neither committed nor aborted.

        Spark accepts such an attempt. To fence it then would abort rows that are part of the batch.

        :param of_earlier_run: A writer that is not waited for, because it is not an attempt of this run.
        """

        async def check() -> None:
            try:
                await _check_stable(Groups(self.cluster), task_name(self.sink, task))
            except KafkaError as error:
                if error.code is not ErrorCode.UNSTABLE_OFFSET_COMMIT:
                    raise
                if of_earlier_run is None or await self.identity_of(task) != of_earlier_run:
                    raise

        try:
            await self.cluster.retrying(check, _ACCEPTED_WITHIN_MS)
        except KafkaError as error:
            if error.code is not ErrorCode.UNSTABLE_OFFSET_COMMIT:
                raise

    async def add_partitions(self, transaction: Prepared, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions to a task's transaction before producing to them."""
        await self._id(transaction.task, transaction.attempt).add_partitions(transaction.identity, partitions)

    async def mark_of(self, task: int, batch: BatchId) -> TaskCommit | None:
        """Return the mark of a task, which is final after the task was fenced."""
        return await self._mark(task, batch, stable=True)

    async def put_mark(self, task: int, identity: ProducerIdAndEpoch, mark: TaskCommit, topic: str) -> None:
        """Commit the mark with the task's transaction.

        :param topic: A topic that is written to; see `_commit_offsets`.
        """
        await self._commit_offsets(task, identity, task_name(self.sink, task), [mark.to_offset()], topic)

    async def decision_of(self, batch: BatchId) -> CommitDecision | None:
        """Return the decision on a batch."""
        return await self._decision(batch, stable=True)

    async def recover(self, batch: BatchId) -> bool:
        """Commit what was decided; return whether the batch is complete, so that nothing is to be written."""
        is_open = await self.cluster.retrying(self._is_carrier_open)
        # A decision in an open transaction does not count yet, and a stable read would wait until it times out.
        decision = await self._decision(batch, stable=not is_open)
        return decision is not None and not await self._commit_all(decision.prepared, batch)

    async def commit(
        self,
        batch: BatchId,
        prepared: Sequence[Prepared],
        carrier: ProducerIdAndEpoch,
        skipped: Collection[int],
        topic: str,
    ) -> None:
        """Decide that these transactions make up a batch, and commit them.

        :param carrier: The transaction of task 0, which may have no rows.
        :param skipped: Tasks whose rows were already committed.
        :param topic: A topic that is written to; see `_commit_offsets`.
        :raises RowsMoved: When rows of an earlier run were committed that no current task has.
        :raises Fenced: When a transaction is lost.
        """
        of_now = {CARRIER, *skipped, *(transaction.task for transaction in prepared)}
        await self._check_moved(batch, of_now)
        await self._abort_leftovers({task_name(self.sink, task) for task in of_now})
        if not prepared:
            return
        await self._decide(CommitDecision(batch, tuple(prepared)), carrier, topic)
        rest = [transaction for transaction in prepared if transaction.task != CARRIER]
        uncommitted = await self._commit_all(rest, batch)
        if uncommitted:
            raise Fenced(
                f"batch {batch.number} of sink '{self.sink}' is decided, but the transactions of tasks "
                f"{_listed(uncommitted)} are lost: they timed out, or the sink runs elsewhere, too; "
                "start the query again to write them"
            )

    async def commit_plainly(self, prepared: Sequence[Prepared]) -> None:
        """Commit the transactions of a batch that cannot be repeated, and abort those of other attempts.

        :raises Fenced: When some are lost; the others are committed.
        """
        uncommitted = await self._end_all(prepared, commit=True)
        names = {task_name(self.sink, transaction.task, transaction.attempt) for transaction in prepared}
        await self._abort_leftovers(names)
        if uncommitted:
            raise Fenced(
                f"sink '{self.sink}': the transactions of tasks {_listed(uncommitted)} are lost: they timed out after "
                f"{self.timeout_ms} ms (kafka.transaction.timeout.ms), or the sink runs elsewhere, too; what other "
                "tasks wrote is committed"
            )

    async def abandon(self, transaction: Prepared) -> None:
        """Abort the transaction of an attempt that failed, so that it does not block read_committed consumers until it
        is replaced or times out. If that is not possible within some seconds, leave it.
        """
        with suppress(KafkaError, ConnectionError, TimeoutError):
            async with asyncio.timeout(_ABANDON_S_MAX):
                await self._end_all([transaction], commit=False)

    async def abort(self, carrier: Prepared | None, prepared: Iterable[Prepared]) -> bool:
        """Abort a batch unless it is decided, in which case `recover` completes it; return whether it was aborted."""
        if carrier is not None and await self._is_decided(carrier):
            return False
        await self._end_all(prepared, commit=False)
        return True

    async def _is_decided(self, carrier: Prepared) -> bool:
        """Try to abort the transaction of task 0: if that succeeds, it cannot commit a decision any more."""
        if not await self._end_all([carrier], commit=False):
            return False
        return not await self._end_all([carrier], commit=True)  # ending it the same way again has no effect

    async def _is_carrier_open(self) -> bool:
        """Whether the transaction of task 0 is open; if not, it has ended on all partitions, with the last decision.

        :raises KafkaError: CONCURRENT_TRANSACTIONS while it is ending.
        """
        description = await self._described(CARRIER)
        if description is not None and description.state in _ENDING:
            message = f"transactional id '{description.transactional_id}' is in state {description.state}"
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, message)
        return description is not None and description.state == _OPEN

    async def _described(self, task: int) -> TransactionDescription | None:
        try:
            return await Transactions(self.cluster).describe(task_name(self.sink, task))
        except KafkaError as error:
            if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise
            return None

    async def _check_moved(self, batch: BatchId, of_now: Collection[int]) -> None:
        """Check that no other task of an earlier decision has committed rows.

        The current tasks have checked their own marks, and the others are fenced, so the result stays true.
        """
        decision = await self.decision_of(batch)
        stray = []
        for transaction in decision.prepared if decision else ():
            if transaction.task not in of_now:
                await self.fence(transaction.task)
                if await self.mark_of(transaction.task, batch) is not None:
                    stray.append(transaction.task)
        if stray:
            tasks = ", ".join(map(str, stray))
            raise RowsMoved(moved_message(self.sink, batch, f"there are no rows for tasks {tasks} now"))

    async def _abort_leftovers(self, of_now: Collection[str]) -> None:
        """Abort transactions that other runs and attempts left open, under other names than those of this batch: they
        would block read_committed consumers.
        """
        for name in await self._open_names():
            if name not in of_now and is_task_name(self.sink, name):
                await TransactionalId(self.cluster, name).initialize(self.timeout_ms)

    async def _open_names(self) -> list[str]:
        transactions = Transactions(self.cluster)
        try:
            listed = await transactions.list(["Ongoing"], pattern=f"{re.escape(self.sink)}.*")
        except KafkaError as error:
            if error.code is not ErrorCode.UNSUPPORTED_VERSION:  # brokers before 4.1 do not support a pattern
                raise
            listed = await transactions.list(["Ongoing"])
        return [listing.transactional_id for listing in listed]

    async def _decide(self, decision: CommitDecision, carrier: ProducerIdAndEpoch, topic: str) -> None:
        try:
            await self._commit_carrier(decision, carrier, topic)
        except KafkaError as error:
            if error.code not in GONE:
                raise
            raise Fenced(
                f"batch {decision.batch.number} of sink '{self.sink}' is not committed: task 0 was fenced, because "
                f"the sink runs elsewhere, too, or its transaction was open for longer than {self.timeout_ms} ms "
                "(kafka.transaction.timeout.ms)"
            ) from error

    async def _commit_carrier(
        self, decision: CommitDecision, carrier: ProducerIdAndEpoch, topic: str
    ) -> None:
        tasks = [transaction.task for transaction in decision.prepared]
        if tasks != [CARRIER]:  # needs no decision: it is committed or not
            is_stored = await self._commit_offsets(CARRIER, carrier, self.sink, decision.to_offsets(), topic)
            if not is_stored and CARRIER not in tasks:
                return  # its transaction is empty, so there is none
        await self._id(CARRIER).end(carrier, commit=True)

    async def _commit_offsets(
        self,
        task: int,
        identity: ProducerIdAndEpoch,
        group: str,
        parts: Sequence[OffsetAndMetadata],
        target: str,
    ) -> bool:
        """Commit parts as offsets of the bookkeeping topic, or else of `target`; return False if they have too few
        partitions.
        """
        own = await bookkeeping_topic(self.cluster)
        for topic in (target,) if own is None else (own, target):
            if len(parts) > len((await self.cluster.topic(topic)).partitions):
                continue
            offsets = {TopicPartition(topic, index): part for index, part in enumerate(parts)}
            try:
                await self._id(task).commit_offsets(identity, group, offsets)
            except KafkaError as error:
                if topic == target or error.code not in REFUSED:
                    raise
            else:
                return True
        return False

    async def _commit_all(self, prepared: Sequence[Prepared], batch: BatchId) -> list[Prepared]:
        """Commit transactions; return those that could not be committed.

        A mark that is pending counts as missing, because a repeated task may have an open transaction. The task has
        looked, or will look, for the mark itself.
        """
        doubtful = await self._end_all(prepared, commit=True)
        marks = await asyncio.gather(
            *(self._mark(transaction.task, batch, stable=False) for transaction in doubtful)
        )
        return [transaction for transaction, mark in zip(doubtful, marks, strict=True) if mark is None]

    async def _end_all(self, prepared: Iterable[Prepared], *, commit: bool) -> list[Prepared]:
        """End transactions; return those that no longer exist."""

        async def end(ended_transaction: Prepared) -> Prepared | None:
            try:
                await self._id(ended_transaction.task, ended_transaction.attempt).end(
                    ended_transaction.identity, commit=commit
                )
            except KafkaError as error:
                if error.code not in GONE:
                    raise
                return ended_transaction
            return None

        ended = await asyncio.gather(*map(end, prepared))
        return [ended_transaction for ended_transaction in ended if ended_transaction is not None]

    async def _mark(self, task: int, batch: BatchId, *, stable: bool) -> TaskCommit | None:
        return find_mark(await self._offsets(task_name(self.sink, task), batch, stable=stable), batch)

    async def _decision(self, batch: BatchId, *, stable: bool) -> CommitDecision | None:
        return CommitDecision.find(await self._offsets(self.sink, batch, stable=stable), batch)

    async def _offsets(self, group: str, batch: BatchId, *, stable: bool) -> list[OffsetAndMetadata]:
        """Return the committed offsets of a group; with `stable`, wait until none is pending (KIP-447).

        :raises KafkaError: The error of a partition; UNSTABLE_OFFSET_COMMIT if an offset stays pending.
        """

        async def fetch() -> list[OffsetAndMetadata]:
            groups = Groups(self.cluster)
            if stable:
                await _check_stable(groups, group)
            found = await groups.offsets(group, stable=stable)
            raise_errors(found.values())
            return [offset for offset in found.values() if isinstance(offset, OffsetAndMetadata)]

        offsets = await self.cluster.retrying(fetch, _PENDING_MS_MAX)
        newest = newest_batch(offsets, batch.query)
        if newest > batch.number:
            raise SinkError(
                f"sink '{self.sink}' has already written batch {newest}, and got batch {batch.number}: the checkpoint "
                "is older than what was written, or batchId does not increase; another sinkName starts from scratch"
            )
        return offsets

    def _id(self, task: int, attempt: int = 0) -> TransactionalId:
        return TransactionalId(self.cluster, task_name(self.sink, task, attempt))


async def _check_stable(groups: Groups, group: str) -> None:
    """Check that the first part of a mark or decision is not pending.

    A request without partitions leaves out those whose only offset is pending.

    :raises KafkaError: UNSTABLE_OFFSET_COMMIT.
    """
    [first] = (await groups.offsets(group, [TopicPartition(TOPIC, 0)], stable=True)).values() or [None]
    if isinstance(first, KafkaError) and first.code is ErrorCode.UNSTABLE_OFFSET_COMMIT:
        raise first


def moved_message(sink: str, batch: BatchId, what: str) -> str:
    """Return the error message for rows that moved to other tasks."""
    return (
        f"batch {batch.number} of sink '{sink}' is committed in part, and its rows are in other tasks than before "
        f"({what}); a row might be written twice or not at all. When a batch is repeated, its rows must be in the same "
        "tasks: use repartitionById, or repartition by a key, before the sink"
    )


def _listed(prepared: Iterable[Prepared]) -> str:
    return ", ".join(str(transaction.task) for transaction in prepared)
