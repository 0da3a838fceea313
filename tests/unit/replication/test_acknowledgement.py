"""Waits for the disk and for the in-sync replicas."""

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.base.deadlines import Deadlines
from barnabas.metadata.topics import PartitionRegistration
from barnabas.replication.acknowledgement import acknowledged
from barnabas.replication.partition import Partition
from barnabas.wire.errors import ErrorCode, KafkaError
from support.batches import batch
from support.loop import in_virtual_time, turns

Make = Callable[..., Partition]
LEADER = PartitionRegistration(1, 0, (1, 2), replicas=(1, 2))
FOLLOWER = PartitionRegistration(2, 1, (1, 2), 1, (1, 2))


def pending() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


@in_virtual_time
async def test_it_ends_after_the_flush_and_the_replication() -> None:
    flushed, replicated = pending(), pending()
    waiting = asyncio.create_task(acknowledged(flushed, replicated))
    replicated.set_result(None)
    await turns()
    assert not waiting.done()
    flushed.set_result(None)
    await waiting
    await acknowledged(None, None)


@in_virtual_time
async def test_replicas_that_take_too_long_are_given_up() -> None:
    replicated = pending()
    Deadlines().limit(replicated, 1000)
    with pytest.raises(TimeoutError):
        await acknowledged(None, replicated)


@in_virtual_time
async def test_a_wait_that_is_cancelled_gives_up_the_replicas() -> None:
    replicated = pending()
    waiting = asyncio.create_task(acknowledged(None, replicated))
    await turns()
    waiting.cancel()
    await turns()
    assert replicated.cancelled()


@in_virtual_time
async def test_after_a_failed_flush_no_error_of_the_replicas_is_left_over() -> None:
    unretrieved: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unretrieved.append(context))
    flushed, replicated = pending(), pending()
    replicated.set_exception(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "not any longer"))
    flushed.set_exception(OSError(5, "Input/output error"))
    with pytest.raises(OSError, match="Input/output error"):
        await acknowledged(flushed, replicated)
    del flushed, replicated
    gc.collect()
    assert not unretrieved


@in_virtual_time
async def test_a_broker_that_does_not_lead_cannot_wait_for_its_followers(make_partition: Make) -> None:
    partition = make_partition((1, 2), LEADER)
    end_offset = partition.append_as_leader(batch(b"x"), 1).last_offset + 1
    replicated = partition.when_replicated(end_offset)
    assert replicated is not None
    partition.update_state(FOLLOWER)
    with pytest.raises(KafkaError, match="does not lead t-0 any longer"):
        await acknowledged(None, replicated)
    with pytest.raises(KafkaError, match="does not lead t-0"):
        partition.when_replicated(end_offset)
