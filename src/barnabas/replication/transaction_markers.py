"""The ends of transactions, written to partitions of this broker for their coordinator."""

import asyncio
from collections.abc import Awaitable, Iterable

from barnabas.base.ids import TopicPartition
from barnabas.replication.flusher import Flusher
from barnabas.replication.partition import Partition
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.control import EndTransactionMarker


async def write_end_markers(
    replicas: ReplicaManager,
    flusher: Flusher,
    marker: EndTransactionMarker,
    partitions: Iterable[TopicPartition],
    *,
    transaction_version: int,
    timeout_ms: int,
) -> dict[TopicPartition, ErrorCode]:
    """Append the marker to each partition and wait until every in-sync replica has it.

    `replicas.on_end_marker` is told of each. Gives back what became of each: NONE, UNKNOWN_TOPIC_OR_PARTITION for
    those that are not here, NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED,
    NOT_ENOUGH_REPLICAS, REQUEST_TIMED_OUT or KAFKA_STORAGE_ERROR.
    """
    outcomes: dict[TopicPartition, ErrorCode] = {}
    waits: list[Awaitable[None]] = []
    for name in partitions:
        partition = replicas.find(name.topic, name.partition)
        if partition is None:
            outcomes[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            continue
        try:
            end_offset = partition.append_end_marker(marker, transaction_version).last_offset + 1
        except KafkaError as error:
            outcomes[name] = error.code
            continue
        outcomes[name] = ErrorCode.NONE
        replicas.on_end_marker(name, marker)
        if partition.log.needs_flush or partition.log.high_watermark < end_offset:
            waits.append(_settle(flusher, partition, end_offset, timeout_ms, outcomes, name))
    if waits:
        await asyncio.gather(*waits)
    return outcomes


async def _settle(
    flusher: Flusher,
    partition: Partition,
    end_offset: int,
    timeout_ms: int,
    outcomes: dict[TopicPartition, ErrorCode],
    name: TopicPartition,
) -> None:
    """Wait for disk and replicas; what fails becomes the outcome."""
    try:
        if partition.log.needs_flush:
            await flusher.flushed(partition.log)
        reached = partition.replicated(end_offset)
        if reached is not None:
            await asyncio.wait_for(reached, timeout_ms / 1000)
    except TimeoutError:
        outcomes[name] = ErrorCode.REQUEST_TIMED_OUT
    except OSError:
        outcomes[name] = ErrorCode.KAFKA_STORAGE_ERROR
    except KafkaError as error:
        outcomes[name] = error.code
