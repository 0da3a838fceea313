"""Checks for timeouts and expired ids, whose records are larger together than the log accepts."""

import asyncio
import itertools

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.config.broker_config import BrokerConfig
from barnabas.coordinator.result import CoordinatorResult
from barnabas.coordinator.runner import ShardRunner
from barnabas.transactions import shard as module
from barnabas.transactions.shard import (
    REMOVED_AT_ONCE_MAX,
    TransactionCoordinatorContext,
    TransactionShard,
    WriteMarkers,
)
from barnabas.transactions.states import TransactionState
from barnabas.transactions.transaction import TransactionMetadata
from barnabas.wire.coordinator_records.serde import CoordinatorRecord
from barnabas.wire.errors import ErrorCode, KafkaError
from support.loop import in_virtual_time
from support.shards import MemoryShardLog
from support.transaction_shards import image_at

SETTINGS = {"node.id": "1", "log.dirs": "/nowhere"}
EIGHT_DAYS_MS = 8 * 24 * 3_600_000
NAMES = [f"{number:0200}" for number in range(REMOVED_AT_ONCE_MAX)]


async def running(log: MemoryShardLog, effects: list[object]) -> ShardRunner[TransactionShard]:
    context = TransactionCoordinatorContext(
        lambda: BrokerConfig(SETTINGS), lambda: image_at(2), itertools.count().__next__
    )
    runner = ShardRunner(TransactionShard(context), log, ManualClock(EIGHT_DAYS_MS), effects.append)
    await runner.load()
    return runner


def log_of(state: TransactionState, *sizes: int) -> MemoryShardLog:
    """Return a log of transactions, each with so many partitions, that accepts 64 KiB from now on."""
    log = MemoryShardLog()
    for number, (name, size) in enumerate(zip(NAMES, sizes, strict=False)):
        partitions = frozenset(TopicPartition("t", index) for index in range(size))
        transaction = TransactionMetadata(name, number, 0, 60_000, state, 0, 0, partitions)
        log.append([CoordinatorRecord(transaction.key, transaction.value())], 0, None)
    log.bytes_max = 1 << 16
    return log


@in_virtual_time
async def test_transactions_that_are_large_together_are_aborted_after_their_timeout() -> None:
    effects: list[object] = []
    runner = await running(log_of(TransactionState.ONGOING, *[10] * len(NAMES)), effects)
    await asyncio.sleep(15)
    states = {transaction.state for transaction in runner.shard.transactions.values()}
    assert states == {TransactionState.PREPARE_ABORT}
    assert sum(isinstance(effect, WriteMarkers) for effect in effects) == len(NAMES)
    assert runner.timers_count == 2


@in_virtual_time
async def test_a_transaction_that_the_log_does_not_accept_does_not_keep_others_open() -> None:
    runner = await running(log_of(TransactionState.ONGOING, 30_000, 10), [])
    await asyncio.sleep(15)
    states = [transaction.state for transaction in runner.shard.transactions.values()]
    assert states == [TransactionState.ONGOING, TransactionState.PREPARE_ABORT]
    assert runner.timers_count == 2


@in_virtual_time
async def test_transactions_are_not_aborted_one_by_one_while_nothing_can_be_appended() -> None:
    log = log_of(TransactionState.ONGOING, 1, 1, 1)
    runner = await running(log, [])
    log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few")
    await asyncio.sleep(15)
    assert runner._counts.refused_appends_count == 1
    log.refusal = None
    await asyncio.sleep(10)
    states = {transaction.state for transaction in runner.shard.transactions.values()}
    assert states == {TransactionState.PREPARE_ABORT}


@in_virtual_time
async def test_the_timer_of_an_earlier_check_finds_nothing_after_one_without_timed_out_transactions() -> None:
    runner = await running(log_of(TransactionState.ONGOING, 10), [])
    found, nothing, late = (CoordinatorResult(EIGHT_DAYS_MS) for _ in range(3))
    runner.shard.expire(found, module._SWEEP_TIMEOUTS)
    assert module._ABORT_NEXT in [timer.key for timer in found.timers]
    runner.shard.transactions.clear()
    runner.shard.expire(nothing, module._SWEEP_TIMEOUTS)
    runner.shard.expire(late, module._ABORT_NEXT)
    assert (late.records, late.timers) == ([], [])


@in_virtual_time
async def test_expired_ids_that_are_large_together_are_removed() -> None:
    runner = await running(log_of(TransactionState.COMPLETE_COMMIT, *[0] * len(NAMES)), [])
    await asyncio.sleep(3_601)
    assert runner.shard.transactions == {}
    assert runner.timers_count == 2
