"""Reads a partition batch by batch as its log stores it, with aborted records and control batches."""

from collections.abc import AsyncIterator

from barnabas.base.buffers import Buffer
from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST, LATEST, find_offsets
from barnabas.client.consumer.fetch_messages import FetchLimits
from barnabas.client.consumer.fetching import fetch_partition
from barnabas.client.core.cluster import ClusterClient
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.isolation import Isolation
from barnabas.wire.records.batch import iterate_headers

_LIMITS = FetchLimits()


async def read_log(cluster: ClusterClient, tp: TopicPartition) -> AsyncIterator[Buffer]:
    """Yield all batches from the first offset to the partition's end at the time of the call.

    :raises KafkaError: An error of the broker that is not retriable.
    :raises BrokerConnectionError: When a leader was not reached for as long as the cluster retries.
    """
    position, end = [(await find_offsets(cluster, {tp: spec}))[tp] for spec in (EARLIEST, LATEST)]
    while position < end:
        batches, position = await _read(cluster, tp, position)
        yield batches


async def _read(cluster: ClusterClient, tp: TopicPartition, position: int) -> tuple[Buffer, int]:
    """Return the batches at `position`, at least one, and the offset after them."""

    async def attempt() -> tuple[Buffer, int]:
        data = await fetch_partition(cluster, tp, position, _LIMITS, Isolation.READ_UNCOMMITTED)
        batches = data.records or b""
        behind = [header.next_offset for _, header in iterate_headers(batches)]
        if not behind:
            message = (
                f"no data at offset {position} of partition {tp}, although its end offset was larger before"
            )
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, message)
        return batches, behind[-1]

    return await cluster.retrying(attempt)
