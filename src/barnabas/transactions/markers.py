"""Writes transaction markers to all partitions of a transaction, until each has its marker."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, Protocol

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.coordinator.runner import ShardRunner, ShardState
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.telemetry.logs import get_logger
from barnabas.transactions.shard import GetProducerIds, TransactionShard, WriteMarkers
from barnabas.transactions.states import TransactionState
from barnabas.transactions.transaction import TransactionMetadata
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.control import EndTransactionMarker

#: Pause before a failed marker is retried.
RETRY_MS = 100

#: Results that end the retries: written; partition deleted; a later producer or coordinator has written.
FINAL_ERRORS = frozenset({
    ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
})  # fmt: skip

_log = get_logger("barnabas.transactions")


class MarkerWriter(Protocol):
    """Writes markers to partitions, on any broker."""

    async def write(
        self, marker: EndTransactionMarker, partitions: Collection[TopicPartition], transaction_version: int
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Return the error code of each partition; UNKNOWN_TOPIC_OR_PARTITION only if it is deleted for good."""
        ...


class MarkerSender:
    """Carries out the effects that shards request: one task for each transaction that is ending."""

    def __init__(
        self, writer: MarkerWriter, clock: Clock, get_producer_ids: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        self._writer = writer
        self._clock = clock
        self._get_producer_ids = get_producer_ids
        self._find: Callable[[str], ShardRunner[TransactionShard]]
        self._tasks: set[asyncio.Task[None]] = set()
        self.ending_count = 0  #: transactions that are ending
        self.waiting_count = 0  #: markers to be written
        self.retries_count = 0  #: retried markers

    def serve(self, coordinator: CoordinatorRuntime[TransactionShard]) -> None:
        """Notify this coordinator when markers are written."""
        self._find = coordinator.runner

    def do(self, effect: WriteMarkers | GetProducerIds) -> None:
        """Start what a shard requests."""
        if isinstance(effect, GetProducerIds):
            self._start(self._get_producer_ids())
            return
        try:
            runner = self._find(effect.transaction.transactional_id)
        except KafkaError:
            return  # the present coordinator finds the transaction in the log
        self._start(self._send(runner, effect.transaction))

    def _start(self, what: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, runner: ShardRunner[TransactionShard], transaction: TransactionMetadata) -> None:
        marker = EndTransactionMarker(
            transaction.producer_id,
            transaction.producer_epoch,
            runner.log.leader_epoch,
            transaction.state is TransactionState.PREPARE_COMMIT,
            self._clock.wall_ms(),
        )
        self.ending_count += 1
        try:
            await self._write(runner, transaction, marker)
        finally:
            self.ending_count -= 1
        runner.run_event(lambda shard, result: shard.markers_written(result, transaction))

    async def _write(
        self,
        runner: ShardRunner[TransactionShard],
        transaction: TransactionMetadata,
        marker: EndTransactionMarker,
    ) -> None:
        left: Collection[TopicPartition] = sorted(transaction.partitions)
        self.waiting_count += len(left)
        try:
            while left and runner.state is ShardState.ACTIVE:
                outcomes = await self._writer.write(marker, left, transaction.client_version)
                refused = {
                    partition: outcomes[partition]
                    for partition in left
                    if outcomes[partition] not in FINAL_ERRORS
                }
                self.waiting_count -= len(left) - len(refused)
                left = refused
                if refused:
                    await self._try_again_later(transaction, refused)
        finally:
            self.waiting_count -= len(left)

    async def _try_again_later(
        self, transaction: TransactionMetadata, refused: Mapping[TopicPartition, ErrorCode]
    ) -> None:
        self.retries_count += len(refused)
        _log.warning(
            "cannot write transaction markers yet",
            transactional_id=transaction.transactional_id,
            partitions=[
                f"{partition.topic}-{partition.partition}: {code.name}" for partition, code in refused.items()
            ],
        )
        await asyncio.sleep(RETRY_MS / 1000)

    async def stop(self) -> None:
        """Stop; the next start continues."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def statistics(self) -> dict[str, int]:
        return {
            "ending_count": self.ending_count,
            "waiting_count": self.waiting_count,
            "retries_count": self.retries_count,
        }
