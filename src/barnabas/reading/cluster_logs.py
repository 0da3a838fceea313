"""Queries a running cluster for planning: partitions, offsets, sizes."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

import uvloop

from barnabas.base.ids import TopicPartition
from barnabas.client.admin import log_dirs
from barnabas.client.admin.offsets import EARLIEST, LATEST, OffsetSpec, find_offsets
from barnabas.client.consumer.fetch_messages import FetchLimits
from barnabas.client.consumer.fetching import fetch
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.loop_thread import LoopThread
from barnabas.client.core.metadata import TopicInfo
from barnabas.reading.connection import new_cluster
from barnabas.reading.offset_range import OffsetRange
from barnabas.reading.options import (
    Assign,
    ReadOptions,
    Subscribe,
    TopicSelection,
)
from barnabas.reading.topic_patterns import topic_matcher
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.isolation import Isolation
from barnabas.wire.records.batch import iterate_headers

ResultT = TypeVar("ResultT")

#: The sample of a partition whose size may not be queried.
_SAMPLE = FetchLimits(max_wait_ms=100, partition_max_bytes=64 * 1024)


#: How long unreachable brokers and partitions without leader are retried before planning fails.
_PLANNING_TIMEOUT_MS = 30_000


class ClusterLogs:
    """`Logs` of a cluster; connects on first use."""

    def __init__(self, options: ReadOptions) -> None:
        self._isolation = options.isolation
        self._skips_missing_topics = not options.fail_on_data_loss
        self._attempts_count = options.offset_attempts_count
        self._pause_s = options.offset_retry_ms / 1000
        timeout_ms = min(_PLANNING_TIMEOUT_MS, options.connection.retry_timeout_ms)
        self._cluster = new_cluster(options.connection, timeout_ms)
        self._loop = LoopThread("barnabas-logs", uvloop.new_event_loop())

    def partitions(self, selection: TopicSelection) -> dict[TopicPartition, bytes]:
        return self._loop.run(self._partitions(selection))

    def offsets(self, specs: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
        return self._loop.run(find_offsets(self._cluster, specs, self._isolation))

    def record_bytes(self, ranges: Collection[OffsetRange]) -> dict[TopicPartition, float]:
        """Return average sizes as `Logs`; sampled if the brokers do not report sizes."""
        return self._loop.run(self._record_bytes(ranges))

    def run(self, call: Callable[[ClusterClient], Coroutine[Any, Any, ResultT]]) -> ResultT:
        """Return the result of another call of this cluster."""
        return self._loop.run(call(self._cluster))

    def close(self) -> None:
        self._loop.run(self._cluster.close())
        self._loop.stop()

    async def _partitions(self, selection: TopicSelection) -> dict[TopicPartition, bytes]:
        match selection:
            case Subscribe(topics):
                topic_infos = await self._topics(topics)
            case Assign(partitions):
                topic_infos = await self._topics({tp.topic for tp in partitions})
            case _:
                await self._cluster.retrying(lambda: self._cluster.refresh(None))
                everything = self._cluster.metadata.topics.values()
                matches = topic_matcher(selection.pattern)
                topic_infos = [info for info in everything if not info.is_internal and matches(info.name)]
        topic_partitions = {
            TopicPartition(topic.name, info.partition_index): topic.topic_id
            for topic in topic_infos
            for info in topic.partitions
        }
        if isinstance(selection, Assign):
            return {tp: topic_partitions[tp] for tp in sorted(selection.partitions & topic_partitions.keys())}
        return topic_partitions

    async def _topics(self, names: Iterable[str]) -> list[TopicInfo]:
        """Return the current metadata of these topics, which may have grown or been created just now."""
        requested_names = set(names)
        for attempt in range(1, self._attempts_count + 1):
            await self._cluster.retrying(lambda: self._cluster.refresh(requested_names))
            topics = [self._cluster.metadata.topics[name] for name in sorted(requested_names)]
            failed = [topic.error for topic in topics if topic.error is not None]
            if not failed:
                return topics
            if not all(error.code.retriable for error in failed):
                break
            if attempt < self._attempts_count:
                await asyncio.sleep(self._pause_s)
        if self._skips_missing_topics and all(_is_unknown(error) for error in failed):
            return [topic for topic in topics if topic.error is None]
        raise failed[0]

    async def _record_bytes(self, ranges: Collection[OffsetRange]) -> dict[TopicPartition, float]:
        partitions = [offset_range.tp for offset_range in ranges]
        if not partitions:
            return {}
        starts, ends, sizes = await asyncio.gather(
            find_offsets(self._cluster, dict.fromkeys(partitions, EARLIEST)),
            find_offsets(self._cluster, dict.fromkeys(partitions, LATEST)),
            self._sizes(partitions),
        )
        known = {
            tp: sizes[tp] / (ends[tp] - starts[tp])
            for tp in partitions
            if tp in sizes and ends[tp] > starts[tp]
        }
        unknown = {
            offset_range.tp: offset_range.low for offset_range in ranges if offset_range.tp not in known
        }
        return known | await self._sampled(unknown)

    async def _sizes(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the bytes of each partition's log, if its leader reports them."""
        sizes: dict[TopicPartition, int] = {}
        for leader, led in (await self._by_leader(partitions)).items():
            try:
                response = await self._cluster.send(log_dirs.describe_log_dirs_request(led), leader)
                for directory in log_dirs.parse_describe_log_dirs_response(response):
                    replicas = directory.replicas.items()
                    sizes |= {tp: replica.size_bytes for tp, replica in replicas if not replica.is_future}
            except (KafkaError, ConnectionError):  # not authorized, or an old broker
                continue
        return sizes

    async def _sampled(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
        """Return the bytes of the batches at these offsets, divided by the number of their offsets."""
        sampled: dict[TopicPartition, float] = {}
        for leader, led in (await self._by_leader(positions)).items():
            try:
                sampled |= await self._sampled_of(leader, {tp: positions[tp] for tp in led})
            except (KafkaError, ConnectionError):  # a default will do
                continue
        return sampled

    async def _sampled_of(
        self, leader: int, positions: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, float]:
        fetched = await fetch(self._cluster, leader, positions, _SAMPLE, Isolation.READ_UNCOMMITTED)
        sampled = {}
        for tp, data in fetched.items():
            headers = [header for _, header in iterate_headers(data.records or b"")]
            if headers:
                offsets_count = headers[-1].next_offset - headers[0].base_offset
                sampled[tp] = sum(header.size_bytes for header in headers) / offsets_count
        return sampled

    async def _by_leader(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        by_leader: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        for tp in partitions:
            by_leader[await self._cluster.leader(tp)].append(tp)
        return by_leader


def _is_unknown(error: KafkaError) -> bool:
    return error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
