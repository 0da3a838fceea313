"""ListOffsets (2), v1-v11: the offset for a timestamp, or for one of the markers below.

v2: isolation level.  v4: leader epochs (KIP-320).  v7: MAX_TIMESTAMP (KIP-734).  v8: EARLIEST_LOCAL (KIP-405).
v9: LATEST_TIERED (KIP-1005).  v10: timeout (KIP-1075).  v11: EARLIEST_PENDING_UPLOAD (KIP-1023).
Leaders answer, and followers if the replica id is that of debugging tools.
Errors, per partition: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER,
FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, OFFSET_NOT_AVAILABLE (KIP-207; LEADER_NOT_AVAILABLE before v5) while a new
leader does not know the high watermark, INVALID_REQUEST for a duplicate partition or an unknown isolation level,
UNSUPPORTED_VERSION for a marker that the version does not have.
"""

from collections.abc import Awaitable, Iterator, Sequence
from typing import NamedTuple

from barnabas.api.authorization import allowed_now, ask_authorizer, log_denial, must_ask
from barnabas.api.context import EncodedResponse, RequestContext
from barnabas.api.data.list_offsets_codec import (
    ListOffsetsData,
    PartitionOffset,
    PartitionRequest,
    TopicOffsets,
    data_of,
    read_request,
    write_response,
)
from barnabas.api.registry import serves
from barnabas.log.offset_lookup import earliest_offset, search_max_timestamp, search_timestamp
from barnabas.log.segments.timestamps import Search, TimestampOffset
from barnabas.replication.partition import NO_EPOCH, Partition
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.isolation import ISOLATION_LEVELS, Isolation
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from barnabas.wire.records.compression import Compression

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6

#: marker -> its first version
MARKERS = {
    LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11,
}  # fmt: skip

FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE = 5

#: Partitions that are looked up before it is checked whether other clients must be served, about 1 us each.
AT_ONCE_COUNT = 20

CONSUMER_REPLICA_ID, DEBUGGING_REPLICA_ID = -1, -2
UNKNOWN = TimestampOffset(timestamp_ms=-1, offset=-1, leader_epoch=-1)


def error_response(request: ListOffsetsRequest, error: KafkaError) -> ListOffsetsResponse:
    return ListOffsetsResponse(topics=[_error_topic(topic, error) for topic in request.topics])


def _error_topic(topic: ListOffsetsTopic, error: KafkaError) -> ListOffsetsTopicResponse:
    responses = [
        ListOffsetsPartitionResponse(partition_index=partition.partition_index, error_code=error.code)
        for partition in topic.partitions
    ]
    return ListOffsetsTopicResponse(name=topic.name, partitions=responses)


def fast_path(
    context: RequestContext, frame: memoryview, position: int
) -> EncodedResponse | Awaitable[EncodedResponse]:
    """Read the request from its frame, and respond in this turn unless a timestamp has to be searched for.

    :raises DecodeError: If the request cannot be read.
    """
    return _list_offsets(context, read_request(bytes(frame[position:]), context.api_version))


@serves(ListOffsetsRequest, ListOffsetsResponse, 1, 11, error_response=error_response, fast_path=fast_path)
async def handle(context: RequestContext, request: ListOffsetsRequest) -> EncodedResponse:
    """Handle a decoded request: a large one, or one for an interceptor."""
    response = _list_offsets(context, await context.compute(data_of, request))
    return response if isinstance(response, EncodedResponse) else await response


def _list_offsets(
    context: RequestContext, request: ListOffsetsData
) -> EncodedResponse | Awaitable[EncodedResponse]:
    if request.isolation_level not in ISOLATION_LEVELS:
        message = (
            f"Isolation level {request.isolation_level} is not 0 (read uncommitted) or 1 (read committed)."
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if context.broker.asks_authorizer:
        names = [name for name, _ in request.topics]
        if must_ask(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names):
            return _ask_and_list(context, request, names)
    return _Listing(context, request).run()


async def _ask_and_list(
    context: RequestContext, request: ListOffsetsData, names: Sequence[str]
) -> EncodedResponse:
    await ask_authorizer(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    response = _Listing(context, request).run()
    return response if isinstance(response, EncodedResponse) else await response


class _TimeSearch(NamedTuple):
    """A timestamp to search for; the result goes to `results[at]`."""

    partition: Partition
    timestamp: int
    results: list[PartitionOffset]
    at: int


class _Listing:
    """One ListOffsets request: look up each partition on its own; a duplicate is refused."""

    __slots__ = ("_context", "_request", "_searches", "_topics")

    def __init__(self, context: RequestContext, request: ListOffsetsData) -> None:
        self._context = context
        self._request = request
        self._topics: list[TopicOffsets] = []
        self._searches: list[_TimeSearch] = []

    def run(self) -> EncodedResponse | Awaitable[EncodedResponse]:
        """Look up everything within this turn, or the rest in later turns if it takes long."""
        steps, turns = self._look_up_each(), self._context.broker.turns
        for _ in steps:
            if turns.must_yield():
                return self._run_later(steps)
        if self._searches:
            return self._run_later(steps)
        return EncodedResponse(*write_response(self._context.api_version, self._topics))

    async def _run_later(self, steps: Iterator[None]) -> EncodedResponse:
        async for _ in self._context.each(steps):
            pass
        for search in self._searches:
            await self._find_time(*search)
        encoded = await self._context.compute(write_response, self._context.api_version, self._topics)
        return EncodedResponse(*encoded)

    def _look_up_each(self) -> Iterator[None]:
        """Look up one partition after another, some in each step; refused topics come first."""
        by_topic: dict[str, dict[int, list[PartitionRequest]]] = {}
        yield from self._authorize_each(by_topic)
        for name, by_index in by_topic.items():
            results: list[PartitionOffset] = []
            self._topics.append((name, results))
            for number, (index, same) in enumerate(by_index.items(), 1):
                try:
                    if len(same) > 1:
                        message = f"{name}-{index} is requested more than once."
                        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
                    self._look_up(name, same[0], results)
                except KafkaError as error:
                    results.append(_error_result(index, error.code))
                if not number % AT_ONCE_COUNT:
                    yield
            yield

    def _authorize_each(self, by_topic: dict[str, dict[int, list[PartitionRequest]]]) -> Iterator[None]:
        """Add errors of topics that may not be described, and put the others into `by_topic`, by name and partition."""
        refused: dict[str, KafkaError] = {}
        for name, partitions in self._request.topics:
            if name not in by_topic and name not in refused:
                error = self._authorization_error(name)
                if error is not None:
                    refused[name] = error
            if name in refused:
                code = refused[name].code
                self._topics.append((name, [_error_result(index, code) for index, _, _ in partitions]))
                yield
                continue
            by_index = by_topic.setdefault(name, {})
            for number, partition in enumerate(partitions, 1):
                by_index.setdefault(partition[0], []).append(partition)
                if not number % AT_ONCE_COUNT:
                    yield
            yield

    def _authorization_error(self, topic: str) -> KafkaError | None:
        action = AclOperation.DESCRIBE, ResourceType.TOPIC, topic
        return None if allowed_now(self._context, *action) else log_denial(self._context, *action)

    def _look_up(self, topic: str, request: PartitionRequest, results: list[PartitionOffset]) -> None:
        """Append the result of a partition, or a placeholder for the result of a search.

        :raises KafkaError: If the partition has no such offset, or cannot be read.
        """
        index, leader_epoch, timestamp = request
        version = self._context.api_version
        if timestamp < 0 and version < MARKERS.get(timestamp, 2**15):
            message = f"ListOffsets version {version} does not support the timestamp {timestamp}."
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
        partition = self._context.broker.replicas.partition(topic, index)
        _check_role(self._request, partition, leader_epoch)
        if timestamp == LATEST:
            self._check_high_watermark(partition)
            results.append((index, ErrorCode.NONE, -1, self._bound(partition), partition.leader_epoch))
            return
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            result = earliest_offset(partition.log)
        else:
            result = UNKNOWN  # there is no tiered storage
            if timestamp not in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
                self._searches.append(_TimeSearch(partition, timestamp, results, len(results)))
        results.append(_to_result(index, result))

    def _check_high_watermark(self, partition: Partition) -> None:
        """Check that the end of what consumers can read is known.

        :raises KafkaError: OFFSET_NOT_AVAILABLE; LEADER_NOT_AVAILABLE for clients that do not know it.
        """
        if self._request.replica_id != CONSUMER_REPLICA_ID or partition.is_high_watermark_known:
            return
        code = ErrorCode.OFFSET_NOT_AVAILABLE
        if self._context.api_version < FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE:
            code = ErrorCode.LEADER_NOT_AVAILABLE
        message = (
            f"{partition.topic}-{partition.index} has a new leader, and no high watermark of its epoch yet."
        )
        raise KafkaError(code, message)

    def _bound(self, partition: Partition) -> int:
        """Return the end offset for the client: high watermark, last stable offset or, for replicas, log end offset."""
        log = partition.log
        if self._request.replica_id != CONSUMER_REPLICA_ID:
            return log.log_end_offset
        is_committed = self._request.isolation_level == Isolation.READ_COMMITTED
        return log.last_stable_offset if is_committed else log.high_watermark

    async def _find_time(
        self, partition: Partition, timestamp: int, results: list[PartitionOffset], at: int
    ) -> None:
        """Search for a timestamp; `results[at]` becomes the result or an error."""
        log, bound = partition.log, self._bound(partition)
        try:
            search = (
                search_max_timestamp(log) if timestamp == MAX_TIMESTAMP else search_timestamp(log, timestamp)
            )
            result = await _finish(self._context, self._request, partition, search)
            if result is None or result.offset >= bound:
                self._check_high_watermark(partition)
        except KafkaError as error:
            results[at] = _error_result(partition.index, error.code)
            return
        if result is not None and result.offset < bound:
            results[at] = _to_result(partition.index, result)


def _to_result(index: int, result: TimestampOffset) -> PartitionOffset:
    return index, ErrorCode.NONE, result.timestamp_ms, result.offset, result.leader_epoch


def _error_result(index: int, code: ErrorCode) -> PartitionOffset:
    return index, code, -1, -1, -1


def _check_role(request: ListOffsetsData, partition: Partition, leader_epoch: int = NO_EPOCH) -> None:
    if request.replica_id == DEBUGGING_REPLICA_ID:
        partition.check_epoch(leader_epoch)
    else:
        partition.check_leader(leader_epoch)


async def _finish(
    context: RequestContext, request: ListOffsetsData, partition: Partition, search: Search
) -> TimestampOffset | None:
    """Search in turns; large batches are decompressed in a worker thread.

    :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER if the partition is removed meanwhile.
    """
    body: bytes | None = None
    while True:
        if context.broker.replicas.find(*partition.log.topic_partition) is not partition:
            context.broker.replicas.partition(
                *partition.log.topic_partition
            )  # raises if the topic was deleted
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{partition.log.topic_partition} was deleted and recreated.",
            )
        _check_role(request, partition)
        try:
            packed = search.send(body)
        except StopIteration as found:
            return found.value  # type: ignore[no-any-return]
        if packed is None or packed.header.compression is Compression.NONE:
            body = None if packed is None else packed.unpack()
            await context.checkpoint()
        else:
            body = await context.broker.record_worker.call(packed.unpack)
