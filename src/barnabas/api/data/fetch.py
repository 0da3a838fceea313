"""Fetch (1), v4-v18: record batches from many partitions, waiting until there are enough of them.

v4: isolation level.  v5: log start offset.  v7: incremental sessions (KIP-227).  v9: leader epochs (KIP-320).
v11: rack (KIP-392).  v12: last fetched epoch (KIP-595).  v13: topic ids (KIP-516).  v15: replica state (KIP-903).
v16: node endpoints (KIP-951).  v17: directory ids.  v18: high watermark of followers (KIP-1166).
Errors, per partition: TOPIC_AUTHORIZATION_FAILED, OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION,
UNKNOWN_TOPIC_ID, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, KAFKA_STORAGE_ERROR; for the
whole request INVALID_REQUEST (an unknown isolation level), FETCH_SESSION_ID_NOT_FOUND,
INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR. zstd is sent at every version, as Apache Kafka 4 does.
"""

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from barnabas.api.authorization import allowed, allowed_cluster, denied
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.quotas.rate import Rate
from barnabas.replication.fetch_sessions import FetchContext, FetchTarget, Key, targets_of
from barnabas.replication.fetching import Reads, find, read_all, refusal
from barnabas.replication.partition import Partition
from barnabas.replication.waiting import WaitingFetch
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.wire.records.batch import iterate_headers

#: What became of one target.
Answer = tuple[Key, FetchTarget, PartitionData]

READ_UNCOMMITTED, READ_COMMITTED = 0, 1


#: Partitions that are read, or answered, before others are served.
PIECE_PARTITIONS_MAX = 500


def refuse(request: FetchRequest, error: KafkaError) -> FetchResponse:
    """The error at the top and, for clients that look there, at every partition."""
    response = FetchResponse(error_code=error.code)
    for topic in request.topics:
        partitions = [refusal(partition.partition, error.code) for partition in topic.partitions]
        response.responses.append(
            FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=partitions)
        )
    return response


@serves(FetchRequest, FetchResponse, 4, 18, refuse=refuse)
async def handle(context: RequestContext, request: FetchRequest) -> FetchResponse:
    """Read; if that is too little, wait for more or for the time to run out, and read again."""
    node = context.node
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        message = f"Isolation level {request.isolation_level} is unknown: 0 and 1 (committed) are known."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    uses_topic_ids = context.api_version >= 13
    named = await context.compute(_named, request, uses_topic_ids) if context.is_large else None
    try:
        fetch = node.fetch_sessions.begin(request, uses_topic_ids=uses_topic_ids, named=named)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    started_ns = node.tracer.now_ns()
    max_bytes = min(request.max_bytes, node.config.integer("fetch.max.bytes"))
    quotas = _quotas(context, request)
    if quotas is not None:
        max_bytes = min(max_bytes, int(quotas.burst))
    targets, refused = await _authorized(context, request, fetch)
    fetching = _Fetching(context, request, fetch, targets, max_bytes, may_wait=not refused)
    reads = await (fetching.read() if len(targets) <= PIECE_PARTITIONS_MAX else fetching.read_in_pieces())
    reads.answers += refused
    if node.tracer.enabled:
        _trace(context, started_ns, reads)
    if quotas is not None and (throttle_ms := node.quotas.fetched(quotas, reads.size_bytes)):
        context.throttle_ms = throttle_ms
        return FetchResponse(session_id=node.fetch_sessions.untold(fetch))
    response = FetchResponse(session_id=fetch.session_id)
    async for start in context.each(range(0, len(reads.answers), PIECE_PARTITIONS_MAX)):
        _add(response, fetch, reads.answers[start : start + PIECE_PARTITIONS_MAX])
    return response


def _named(request: FetchRequest, uses_topic_ids: bool) -> list[tuple[Key, FetchTarget]]:
    return list(targets_of(request, by_id=uses_topic_ids))


@dataclass(slots=True)
class _Fetching:
    """The reading of one fetch, which waits for more when it finds too little."""

    context: RequestContext
    request: FetchRequest
    fetch: FetchContext
    targets: list[tuple[Key, FetchTarget]]
    max_bytes: int
    may_wait: bool

    async def read(self) -> Reads:
        """Read in one turn. Nothing is awaited between reading and waiting, so that no growth is missed."""
        reads = Reads([])
        self._read(self.targets, reads)
        missing_bytes = self._missing_bytes(reads)
        if missing_bytes > 0:
            waiting = WaitingFetch(missing_bytes, committed=self._committed)
            await waiting.wait(self._partitions(self.targets), self.request.max_wait_ms)
            reads = Reads([])
            self._read(self.targets, reads)
        return reads

    async def read_in_pieces(self) -> Reads:
        """Read many partitions in several turns. Any growth ends the wait, so there may be less than `min_bytes`."""
        waiting = WaitingFetch(1, committed=self._committed)
        partitions: list[Partition] = []
        try:
            reads = Reads([])
            async for piece in self._pieces():
                for partition in self._partitions(piece):
                    partition.add_waiting_fetch(waiting)
                    partitions.append(partition)
                self._read(piece, reads)
            if self._missing_bytes(reads) <= 0:
                return reads
            await waiting.wait_registered(self.request.max_wait_ms)
        finally:
            for partition in partitions:
                partition.remove_waiting_fetch(waiting)
        reads = Reads([])
        async for piece in self._pieces():
            self._read(piece, reads)
        return reads

    async def _pieces(self) -> AsyncIterator[list[tuple[Key, FetchTarget]]]:
        async for start in self.context.each(range(0, len(self.targets), PIECE_PARTITIONS_MAX)):
            yield self.targets[start : start + PIECE_PARTITIONS_MAX]

    def _read(self, targets: list[tuple[Key, FetchTarget]], reads: Reads) -> None:
        read_all(
            self.context.node.replicas,
            targets,
            self.max_bytes,
            committed=self._committed,
            is_incremental=self.fetch.is_incremental,
            reads=reads,
        )

    @property
    def _committed(self) -> bool:
        return self.request.isolation_level == READ_COMMITTED

    def _missing_bytes(self, reads: Reads) -> int:
        """How much more the client waits for; 0 if it does not wait."""
        waits = self.may_wait and self.request.max_wait_ms > 0 and self.targets and not reads.must_answer
        return min(self.request.min_bytes, self.max_bytes) - reads.size_bytes if waits else 0

    def _partitions(self, targets: list[tuple[Key, FetchTarget]]) -> Iterator[Partition]:
        for _, target in targets:
            with suppress(KafkaError):  # reading finds the same
                yield find(self.context.node.replicas, target)


def _quotas(context: RequestContext, request: FetchRequest) -> Rate | None:
    """What the client may fetch; followers may all, and so may who has no quota."""
    quotas = context.node.quotas
    is_follower = max(request.replica_id, request.replica_state.replica_id) >= 0
    if not quotas.enabled or is_follower:
        return None
    return quotas.of(context.connection.principal, context.client_id).fetch


async def _authorized(
    context: RequestContext, request: FetchRequest, fetch: FetchContext
) -> tuple[list[tuple[Key, FetchTarget]], list[Answer]]:
    """The targets that may be read, and the answers for those that may not."""
    if context.node.authorizer is None:
        return fetch.targets, []
    replica_id = request.replica_id if request.replica_id >= 0 else request.replica_state.replica_id
    is_follower = replica_id >= 0
    if is_follower and allowed_cluster(context, AclOperation.CLUSTER_ACTION):
        return fetch.targets, []
    targets: list[tuple[Key, FetchTarget]] = []
    refused: list[Answer] = []
    async for key, target in context.each(fetch.targets):
        name = context.node.image.topic_names.get(target.topic_id) if target.by_id else target.topic
        # An unknown id is no secret.
        if is_follower or (
            name is not None and not allowed(context, AclOperation.READ, ResourceType.TOPIC, name)
        ):
            denied(context, AclOperation.READ, ResourceType.TOPIC, name or "")
            refused.append((key, target, refusal(target.index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
        else:
            targets.append((key, target))
    return targets, refused


def _add(response: FetchResponse, fetch: FetchContext, answers: Iterable[Answer]) -> None:
    """Add what was read, by topic; an incremental session gets only what is new to it."""
    session = fetch.session
    last = response.responses[-1] if response.responses else None
    for key, target, data in answers:
        if session is not None:
            news = target.tell(data)
            if fetch.is_incremental and not news:
                continue
            if data.records:
                session.served(key)
        if last is None or last.topic_id != target.topic_id or last.topic != target.topic:
            last = FetchableTopicResponse(topic=target.topic, topic_id=target.topic_id)
            response.responses.append(last)
        last.partitions.append(data)


def _trace(context: RequestContext, started_ns: int, reads: Reads) -> None:
    answers: Iterable[tuple[Key, FetchTarget, PartitionData]] = reads.answers
    for key, target, data in answers:
        if data.error_code != ErrorCode.NONE:
            continue
        with suppress(KafkaError):  # the topic has been deleted meanwhile
            context.node.tracer.record(
                "barnabas.fetch.read",
                started_ns,
                context.span,
                topic=find(context.node.replicas, target).topic,
                partition=key[1],
                fetch_offset=target.fetch_offset,
                returned_count=_records_count(data),
                high_watermark=data.high_watermark,
            )


def _records_count(data: PartitionData) -> int:
    """Records in the whole batches of an answer, those before the fetch offset included."""
    return sum(header.records_count for _, header in iterate_headers(memoryview(data.records or b"")))
