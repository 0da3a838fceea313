"""Writes transaction markers to partitions of this broker for their coordinator."""

import asyncio
from collections.abc import Awaitable, Iterable

from barnabas.base.ids import TopicPartition
from barnabas.replication.flusher import Flusher
from barnabas.replication.partition import Partition
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.control import EndTransactionMarker


async def write_transaction_markers(
    replicas: ReplicaManager,
    flusher: Flusher,
    marker: EndTransactionMarker,
    partitions: Iterable[TopicPartition],
    *,
    transaction_version: int,
    timeout_ms: int,
) -> dict[TopicPartition, ErrorCode]:
    """Append the marker to each partition and wait until every in-sync replica has it.

    Calls `replicas.on_transaction_marker` for each append.

    :return: The result by partition: NONE, UNKNOWN_TOPIC_OR_PARTITION for a partition that is not on this broker,
        NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, NOT_ENOUGH_REPLICAS,
        REQUEST_TIMED_OUT or KAFKA_STORAGE_ERROR.
    """
    codes: dict[TopicPartition, ErrorCode] = {}
    waits: list[Awaitable[None]] = []
    for name in partitions:
        partition = replicas.find(name.topic, name.partition)
        if partition is None:
            codes[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            continue
        try:
            end_offset = partition.append_transaction_marker(marker, transaction_version).last_offset + 1
        except KafkaError as error:
            codes[name] = error.code
            continue
        codes[name] = ErrorCode.NONE
        replicas.on_transaction_marker(name, marker)
        if partition.log.needs_flush or partition.log.high_watermark < end_offset:
            waits.append(_await_replication(flusher, partition, end_offset, timeout_ms, codes, name))
    if waits:
        await asyncio.gather(*waits)
    return codes


async def _await_replication(
    flusher: Flusher,
    partition: Partition,
    end_offset: int,
    timeout_ms: int,
    codes: dict[TopicPartition, ErrorCode],
    tp: TopicPartition,
) -> None:
    """Wait until the marker is flushed and replicated; an error becomes the result of the partition."""
    try:
        if partition.log.needs_flush:
            await flusher.when_flushed(partition.log)
        replicated = partition.when_replicated(end_offset)
        if replicated is not None:
            await asyncio.wait_for(replicated, timeout_ms / 1000)
    except TimeoutError:
        codes[tp] = ErrorCode.REQUEST_TIMED_OUT
    except OSError:
        codes[tp] = ErrorCode.KAFKA_STORAGE_ERROR
    except KafkaError as error:
        codes[tp] = error.code
