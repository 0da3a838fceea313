"""Writes transaction markers to partitions of this broker for their coordinator."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.replication.acknowledgement import acknowledged
from barnabas.replication.flusher import Flusher
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.control import EndTransactionMarker

#: Markers that are appended before other clients are served, about 50 us each.
APPENDED_AT_ONCE_COUNT = 50


class AppendedMarkers(NamedTuple):
    """Markers that were appended, and the waits until every in-sync replica has them."""

    codes: dict[TopicPartition, ErrorCode]
    waits: Sequence[asyncio.Future[None]]

    async def results(self) -> dict[TopicPartition, ErrorCode]:
        """Wait until every in-sync replica has the markers; return the result of each partition.

        They are NONE, UNKNOWN_TOPIC_OR_PARTITION for a partition that is not on this broker, NOT_LEADER_OR_FOLLOWER,
        INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, NOT_ENOUGH_REPLICAS, REQUEST_TIMED_OUT and
        KAFKA_STORAGE_ERROR.
        """
        if self.waits:
            await asyncio.gather(*self.waits)
        return self.codes


def parts_of(partitions: Sequence[TopicPartition]) -> Iterator[Sequence[TopicPartition]]:
    """Divide the partitions of a transaction: other clients are served between the parts."""
    for start in range(0, len(partitions), APPENDED_AT_ONCE_COUNT):
        yield partitions[start : start + APPENDED_AT_ONCE_COUNT]


def append_transaction_markers(
    replicas: ReplicaManager,
    flusher: Flusher,
    marker: EndTransactionMarker,
    partitions: Iterable[TopicPartition],
    *,
    transaction_version: int,
    timeout_ms: int,
) -> AppendedMarkers:
    """Append the marker to each partition; calls `replicas.on_transaction_marker` for each append."""
    codes: dict[TopicPartition, ErrorCode] = {}
    waits: list[asyncio.Future[None]] = []
    for tp in partitions:
        partition = replicas.find(*tp)
        if partition is None:
            codes[tp] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            continue
        try:
            end_offset = partition.append_transaction_marker(marker, transaction_version).last_offset + 1
            replicated = replicas.when_replicated(partition, end_offset, timeout_ms)
        except KafkaError as error:
            codes[tp] = error.code
            continue
        codes[tp] = ErrorCode.NONE
        replicas.on_transaction_marker(tp, marker)
        flushed = flusher.when_flushed(partition.log) if partition.log.needs_flush else None
        if flushed is not None or replicated is not None:
            waits.append(asyncio.ensure_future(_wait(flushed, replicated, codes, tp)))
    return AppendedMarkers(codes, waits)


async def _wait(
    flushed: "asyncio.Future[None] | None",
    replicated: "asyncio.Future[None] | None",
    codes: dict[TopicPartition, ErrorCode],
    tp: TopicPartition,
) -> None:
    """Wait until the marker is flushed and replicated; an error becomes the result of the partition."""
    try:
        await acknowledged(flushed, replicated)
    except TimeoutError:
        codes[tp] = ErrorCode.REQUEST_TIMED_OUT
    except OSError:
        codes[tp] = ErrorCode.KAFKA_STORAGE_ERROR
    except KafkaError as error:
        codes[tp] = error.code
