"""Fetch (1), v4-v18: record batches from many partitions, waiting until there are enough of them.

v4: isolation level.  v5: log start offset.  v7: incremental sessions (KIP-227).  v9: leader epochs (KIP-320).
v11: rack (KIP-392).  v12: last fetched epoch (KIP-595).  v13: topic ids (KIP-516).  v15: replica state (KIP-903).
v16: node endpoints (KIP-951).  v17: directory ids.  v18: high watermark of followers (KIP-1166).
Errors, per partition: TOPIC_AUTHORIZATION_FAILED, OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION,
UNKNOWN_TOPIC_ID, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, KAFKA_STORAGE_ERROR (from v6
on; NOT_LEADER_OR_FOLLOWER before); for the whole request INVALID_REQUEST (an unknown isolation level),
FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR.
zstd is sent at every version, as Apache Kafka 4 does.
"""

from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from barnabas.api.authorization import allowed_now, log_denial
from barnabas.api.context import EncodedResponse, RequestContext
from barnabas.api.data.fetch_codec import (
    FIRST_VERSION_WITH_LEADER_HINTS,
    FIRST_VERSION_WITH_RACK,
    FIRST_VERSION_WITH_TOPIC_IDS,
    TopicResult,
    data_of,
    read_request,
    write_response,
)
from barnabas.api.data.leader_hints import LeaderHint, NodeEndpoint, endpoints_of, find_leader
from barnabas.api.data.permissions import ask_to_fetch, must_ask_to_fetch, topic_of
from barnabas.api.data.replica_fetch import fetch_replica, is_replica_fetch
from barnabas.api.registry import USE_HANDLER, UseHandler, serves
from barnabas.config.class_names import REPLICA_SELECTOR_KEY, SELECTS_BY_RACK
from barnabas.quotas.rate import Rate
from barnabas.replication.delayed_fetch import DelayedFetch
from barnabas.replication.fetch_reader import PreferredReplica, Reads, error_partition, partition_of, read_all
from barnabas.replication.fetch_sessions import FetchContext
from barnabas.replication.fetch_targets import (
    NO_REPLICA,
    READ_PARTITIONS_MAX,
    FetchData,
    FetchedPartition,
    FetchTarget,
    Key,
)
from barnabas.replication.partition import Partition
from barnabas.replication.replica_selector import ReplicaView, select_in_rack
from barnabas.wire.acls import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.isolation import ISOLATION_LEVELS, Isolation
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.wire.records.batch import iterate_headers

ElementT = TypeVar("ElementT")

#: The result for one target.
FetchResult = tuple[Key, FetchTarget, FetchedPartition]


#: Clients of earlier versions may not know KAFKA_STORAGE_ERROR, and would not retry.
FIRST_VERSION_WITH_STORAGE_ERROR = 6

#: Errors that name the leader.
_WITH_LEADER_HINT = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


#: Aborted transactions that are written on the event loop (2 ms); a thread writes longer lists.
WRITTEN_ABORTED_MAX = 10_000


def error_response(request: FetchRequest, error: KafkaError) -> FetchResponse:
    response = FetchResponse(error_code=error.code)
    for topic in request.topics:
        partitions = [
            _message(error_partition(partition.partition, error.code)) for partition in topic.partitions
        ]
        response.responses.append(
            FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=partitions)
        )
    return response


def _message(refused: FetchedPartition) -> PartitionData:
    return PartitionData(
        partition_index=refused.partition_index,
        error_code=refused.error_code,
        high_watermark=refused.high_watermark,
        last_stable_offset=refused.last_stable_offset,
        log_start_offset=refused.log_start_offset,
        aborted_transactions=None if refused.aborted_transactions is None else [],
    )


def fast_path(
    context: RequestContext, frame: memoryview, position: int
) -> EncodedResponse | Coroutine[Any, Any, EncodedResponse] | UseHandler:
    """Read the request from its frame, and respond in this turn unless it has to wait.

    :raises DecodeError: If the request cannot be read.
    """
    request = read_request(bytes(frame[position:]), context.api_version)
    return USE_HANDLER if request is None else _fetch(context, request)


@serves(FetchRequest, FetchResponse, 4, 18, error_response=error_response, fast_path=fast_path)
async def handle(context: RequestContext, request: FetchRequest) -> EncodedResponse:
    """Handle a decoded request: a large one, one with tagged fields such as a follower's, or one for an interceptor."""
    if is_replica_fetch(context, request.replica_state.replica_id):
        return await fetch_replica(context, request)
    response = _fetch(context, await context.compute(data_of, request, context.api_version))
    return response if isinstance(response, EncodedResponse) else await response


def _fetch(
    context: RequestContext, request: FetchData
) -> EncodedResponse | Coroutine[Any, Any, EncodedResponse]:
    """Start or continue the session, and read."""
    broker = context.broker
    if request.isolation_level not in ISOLATION_LEVELS:
        message = (
            f"Isolation level {request.isolation_level} is not 0 (read uncommitted) or 1 (read committed)."
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    try:
        fetch = broker.fetch_sessions.begin(request, uses_topic_ids=by_id)
    except KafkaError as error:
        return write_response(context.api_version, 0, (), error.code)
    fetching = _Fetching(context, request, fetch)
    return fetching.run() if len(fetch.targets) <= READ_PARTITIONS_MAX else fetching.run_in_slices()


class _Fetching:
    """One fetch: read; if that is too little, wait for more or for the timeout, and read again."""

    __slots__ = (
        "_context",
        "_endpoints",
        "_fetch",
        "_from_followers",
        "_max_bytes",
        "_preferred_replica",
        "_quotas",
        "_read_committed",
        "_refused",
        "_request",
        "_started_ns",
        "_targets",
    )  # fmt: skip

    def __init__(self, context: RequestContext, request: FetchData, fetch: FetchContext) -> None:
        self._context = context
        self._request = request
        self._fetch = fetch
        self._read_committed = request.isolation_level == Isolation.READ_COMMITTED
        self._from_followers = context.api_version >= FIRST_VERSION_WITH_RACK and not request.has_replica_id
        self._preferred_replica = _preferred_replica(context, request)
        self._quotas = _quotas(context, request)
        self._max_bytes = min(request.max_bytes, context.broker.config.integer("fetch.max.bytes"))
        if self._quotas is not None:
            self._max_bytes = min(self._max_bytes, int(self._quotas.burst))
        tracer = context.broker.tracer
        self._started_ns = tracer.now_ns() if tracer.enabled else 0
        self._targets: list[tuple[Key, FetchTarget]] = []  #: authorized targets
        self._refused: list[FetchResult] = []  #: results of the others
        self._endpoints: list[NodeEndpoint] = []  #: of the leaders that errors name

    def run(self) -> EncodedResponse | Coroutine[Any, Any, EncodedResponse]:
        """Respond in this turn unless there are fewer than `min_bytes`.

        Nothing is awaited between reading and waiting, so that no append is missed.
        """
        context, request = self._context, self._request
        if context.broker.asks_authorizer and must_ask_to_fetch(context, request, self._fetch.targets):
            return self._ask_and_run()
        self._authorize(self._fetch.targets)
        reads = Reads([])
        self._read(self._targets, reads)
        missing_bytes = self._missing_bytes(reads)
        if missing_bytes > 0:
            return self._wait(missing_bytes)
        return self._respond(reads)

    async def _ask_and_run(self) -> EncodedResponse:
        await ask_to_fetch(self._context, self._request, self._fetch.targets)
        response = self.run()
        return response if isinstance(response, EncodedResponse) else await response

    async def _wait(self, missing_bytes: int) -> EncodedResponse:
        waiting = DelayedFetch(missing_bytes, read_committed=self._read_committed)
        await waiting.wait(self._partitions(self._targets), self._request.max_wait_ms)
        reads = Reads([])
        self._read(self._targets, reads)
        response = self._respond(reads)
        return response if isinstance(response, EncodedResponse) else await response

    async def run_in_slices(self) -> EncodedResponse:
        """Read many partitions in several turns; a thread writes a long response."""
        await ask_to_fetch(self._context, self._request, self._fetch.targets)
        async for targets in self._slices(self._fetch.targets):
            self._authorize(targets)
        reads = await self._read_in_slices()
        if len(reads.results) + len(self._refused) <= READ_PARTITIONS_MAX:
            response = self._respond(reads)
            return response if isinstance(response, EncodedResponse) else await response
        self._complete(reads)
        if self._charge_quota(reads):
            return self._respond_throttled()
        topics: list[TopicResult] = []
        async for responses in self._slices(reads.results):
            self._add(responses, topics)
        version, session_id = self._context.api_version, self._fetch.session_id
        return await self._context.broker.worker.call(
            write_response, version, session_id, topics, endpoints=self._endpoints
        )

    async def _read_in_slices(self) -> Reads:
        """Read in several turns. The first new readable bytes end the wait, so there may be fewer than `min_bytes`."""
        waiting = DelayedFetch(1, read_committed=self._read_committed)
        partitions: list[Partition] = []
        try:
            reads = Reads([])
            async for targets in self._slices(self._targets):
                for partition in self._partitions(targets):
                    partition.add_delayed_fetch(waiting)
                    partitions.append(partition)
                self._read(targets, reads)
            if self._missing_bytes(reads) <= 0:
                return reads
            await waiting.wait_registered(self._request.max_wait_ms)
        finally:
            for partition in partitions:
                partition.remove_delayed_fetch(waiting)
        reads = Reads([])
        async for targets in self._slices(self._targets):
            self._read(targets, reads)
        return reads

    async def _slices(self, elements: Sequence[ElementT]) -> AsyncIterator[Sequence[ElementT]]:
        async for start in self._context.each(range(0, len(elements), READ_PARTITIONS_MAX)):
            yield elements[start : start + READ_PARTITIONS_MAX]

    def _read(self, targets: Sequence[tuple[Key, FetchTarget]], reads: Reads) -> None:
        read_all(
            self._context.broker.replicas,
            targets,
            self._max_bytes,
            read_committed=self._read_committed,
            is_incremental=self._fetch.is_incremental,
            from_followers=self._from_followers,
            preferred_replica=self._preferred_replica,
            reads=reads,
        )

    def _missing_bytes(self, reads: Reads) -> int:
        """Return how many more bytes the client waits for; 0 if it does not wait.

        As in Kafka, it waits beside partitions that are unknown or forbidden, if there are others.
        """
        request = self._request
        may_wait = (
            request.max_wait_ms > 0 and not reads.must_respond and len(self._targets) > reads.unknown_count
        )
        missing_bytes = min(request.min_bytes, self._max_bytes) - reads.size_bytes if may_wait else 0
        if missing_bytes > 0 and reads.size_bytes and self._is_behind(reads):
            return 0
        return missing_bytes

    def _is_behind(self, reads: Reads) -> bool:
        """Whether a partition has readable records in later segments, too: a read is of one segment."""
        return any(
            partition.continues_in_later_segments(target.fetch_offset, read_committed=self._read_committed)
            for key, target, data in reads.results
            if data.records
            for partition in self._partitions([(key, target)])
        )

    def _partitions(self, targets: Sequence[tuple[Key, FetchTarget]]) -> Iterator[Partition]:
        for _, target in targets:
            with suppress(KafkaError):  # the read has the same error
                yield partition_of(self._context.broker.replicas, target)

    def _authorize(self, targets: Sequence[tuple[Key, FetchTarget]]) -> None:
        """Split the targets into authorized ones and results for the others."""
        context = self._context
        has_replica_id = self._request.has_replica_id
        is_broker = has_replica_id and bool(
            allowed_now(context, AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
        )
        context.is_exempt = is_broker
        if context.broker.authorizer is None or is_broker:
            self._targets += targets
            return
        for key, target in targets:
            name = topic_of(context, target)
            # An unknown id reveals nothing.
            if has_replica_id or (
                name is not None and not allowed_now(context, AclOperation.READ, ResourceType.TOPIC, name)
            ):
                log_denial(context, AclOperation.READ, ResourceType.TOPIC, name or "")
                response = error_partition(target.index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                self._refused.append((key, target, response))
            else:
                self._targets.append((key, target))

    def _respond(self, reads: Reads) -> EncodedResponse | Coroutine[Any, Any, EncodedResponse]:
        self._complete(reads)
        if self._charge_quota(reads):
            return self._respond_throttled()
        topics: list[TopicResult] = []
        self._add(reads.results, topics)
        version, session_id = self._context.api_version, self._fetch.session_id
        if reads.aborted_count > WRITTEN_ABORTED_MAX:
            return self._context.broker.worker.call(
                write_response, version, session_id, topics, endpoints=self._endpoints
            )
        return write_response(version, session_id, topics, endpoints=self._endpoints)

    def _complete(self, reads: Reads) -> None:
        if self._context.api_version < FIRST_VERSION_WITH_STORAGE_ERROR:
            _replace_storage_errors(reads)
        if reads.must_respond and self._context.api_version >= FIRST_VERSION_WITH_LEADER_HINTS:
            self._endpoints = _name_leaders(self._context, reads)
        reads.results += self._refused
        if self._context.broker.tracer.enabled:
            _trace(self._context, self._started_ns, reads)

    def _charge_quota(self, reads: Reads) -> bool:
        """Count what was read, and set the throttle time; return whether the client is throttled."""
        if self._quotas is None:
            return False
        self._context.throttle_ms = self._context.broker.quotas.fetched(self._quotas, reads.size_bytes)
        return self._context.throttle_ms > 0

    def _respond_throttled(self) -> EncodedResponse:
        session_id = self._context.broker.fetch_sessions.session_id_when_throttled(self._fetch)
        return write_response(self._context.api_version, session_id, ())

    def _add(self, responses: Sequence[FetchResult], topics: list[TopicResult]) -> None:
        """Add what was read, by topic; an incremental session gets only what has changed."""
        session, is_incremental = self._fetch.session, self._fetch.is_incremental
        last, partitions = topics[-1] if topics else (None, [])
        for key, target, data in responses:
            if session is not None:
                news = target.record_sent(data)
                if is_incremental and not news:
                    continue
                if data.records:
                    session.served(key)
            if key[0] != last:
                last, partitions = key[0], []
                topics.append((last, partitions))
            partitions.append(data)


def _replace_storage_errors(reads: Reads) -> None:
    """Return NOT_LEADER_OR_FOLLOWER instead of KAFKA_STORAGE_ERROR, as Apache Kafka does."""
    for _, _, data in reads.results:
        if data.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
            data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER


def _name_leaders(context: RequestContext, reads: Reads) -> list[NodeEndpoint]:
    """Add the leaders to errors of partitions that other brokers lead; return the leaders' endpoints."""
    leaders: list[LeaderHint] = []
    for (topic, index), _, data in reads.results:
        if data.error_code in _WITH_LEADER_HINT:
            leader = find_leader(context, topic, index)
            if leader is not None:
                data.leader_hint = leader
                leaders.append(leader)
    return endpoints_of(context, leaders)


def _preferred_replica(context: RequestContext, request: FetchData) -> PreferredReplica | None:
    """Return how replicas are preferred for this consumer; None if it should fetch from leaders."""
    broker = context.broker
    if (
        not request.rack
        or request.has_replica_id
        or broker.config.part(REPLICA_SELECTOR_KEY) != SELECTS_BY_RACK
    ):
        return None
    brokers, listener, rack = broker.image.brokers, context.connection.listener, request.rack

    def view(broker_id: int, end_offset: int) -> ReplicaView | None:
        registration = brokers.get(str(broker_id))
        if registration is None or registration.fenced or registration.endpoint(listener) is None:
            return None
        return ReplicaView(broker_id, registration.rack, end_offset)

    def select(partition: Partition, offset: int) -> int:
        leader = view(broker.broker_id, partition.log.log_end_offset)
        if leader is None:
            return NO_REPLICA
        followers = [found for each in partition.followers_with(offset) if (found := view(*each))]
        selected = select_in_rack(rack, leader, followers)
        return NO_REPLICA if selected == broker.broker_id else selected

    return select


def _quotas(context: RequestContext, request: FetchData) -> Rate | None:
    """Return the fetch quotas of the client; followers and clients without a quota have none."""
    quotas = context.broker.quotas
    if not quotas.enabled or request.has_replica_id:
        return None
    return quotas.of(context.connection.principal, context.client_id).fetch


def _trace(context: RequestContext, started_ns: int, reads: Reads) -> None:
    for key, target, data in reads.results:
        if data.error_code != ErrorCode.NONE:
            continue
        with suppress(KafkaError):  # the topic was deleted meanwhile
            context.broker.tracer.record(
                "barnabas.fetch.read",
                started_ns,
                context.span,
                topic=partition_of(context.broker.replicas, target).topic,
                partition=key[1],
                fetch_offset=target.fetch_offset,
                returned_count=_records_count(data),
                high_watermark=data.high_watermark,
            )


def _records_count(data: FetchedPartition) -> int:
    """Return the number of records in the whole batches of a response, those before the fetch offset included."""
    return sum(header.records_count for _, header in iterate_headers(memoryview(data.records)))
