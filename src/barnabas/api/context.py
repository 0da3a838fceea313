"""Everything a handler may touch. No sockets, no globals, no wall clock."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, NamedTuple, ParamSpec, Self, TypeVar

from barnabas.api.cluster.topic_descriptions import TopicDescriptions
from barnabas.api.registry import ApiSpec
from barnabas.base.buffers import Buffer
from barnabas.base.clock import Clock
from barnabas.base.turns import Share, Turns
from barnabas.base.worker import Worker
from barnabas.config.broker_config import BrokerConfig
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.groups.shard import GroupShard
from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.audit.records import Actor, PolicyResult, Refusal
from barnabas.metadata.client_metrics import ClientTelemetry
from barnabas.metadata.decision import Decision, ResponseT
from barnabas.metadata.dynamic_config import DynamicConfig
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.writer import MetadataWriter
from barnabas.policy.policies import Policies
from barnabas.quotas.manager import QuotaManager
from barnabas.replication.fetch_sessions import FetchSessionCache
from barnabas.replication.flusher import Flusher
from barnabas.replication.log_dir_moves import LogDirMoves
from barnabas.replication.log_importer import LogImporter
from barnabas.replication.producer_ids import ProducerIds
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.replication.transaction_verification import TransactionVerifier
from barnabas.security.authorizer import Authorizer
from barnabas.security.sasl.authenticator import Authenticator
from barnabas.security.security_log import SecurityLog
from barnabas.telemetry.tracing import Span, Tracer
from barnabas.transactions.shard import TransactionShard
from barnabas.wire.errors import ErrorCode

ElementT = TypeVar("ElementT")
Parameters = ParamSpec("Parameters")
ResultT = TypeVar("ResultT")


class EncodedResponse(NamedTuple):
    """A response body that is encoded already."""

    body: bytes | bytearray
    #: Where `throttle_time_ms` stands in the body; None if the version has no such field.
    throttle_position: int | None
    #: What follows on the body, sent uncopied.
    rest: Sequence[Buffer] = ()


@dataclass(slots=True)
class BrokerContext:
    """One broker's parts, as its composition root has put them together."""

    broker_id: int
    dynamic_config: DynamicConfig
    clock: Clock
    rng: random.Random
    metadata: MetadataWriter
    replicas: ReplicaManager
    fetch_sessions: FetchSessionCache
    flusher: Flusher
    producer_ids: ProducerIds
    log_dir_moves: LogDirMoves
    log_importer: LogImporter
    tracer: Tracer
    apis: Mapping[int, ApiSpec]
    quotas: QuotaManager
    client_telemetry: ClientTelemetry
    turns: Turns
    worker: Worker
    groups: CoordinatorRuntime[GroupShard]
    transactions: CoordinatorRuntime[TransactionShard]
    security_log: SecurityLog
    policies: Policies = field(default_factory=Policies)  #: none of them, unless configured
    transaction_verifier: TransactionVerifier | None = None  #: None lets transactions begin unasked
    authorizer: Authorizer | None = None  #: None lets everybody do everything
    #: (version, listener, what is asked for) -> (revision, encoded answer on all topics)
    metadata_answers: dict[tuple[object, ...], tuple[int, bytes]] = field(default_factory=dict)
    topic_descriptions: TopicDescriptions = field(default_factory=TopicDescriptions)

    @property
    def config(self) -> BrokerConfig:
        """This broker's configuration as it stands now; not to be kept: it is replaced when it changes."""
        return self.dynamic_config.current

    @property
    def image(self) -> MetadataImage:
        """Cluster state as this node knows it now."""
        return self.metadata.image

    @property
    def cluster_id(self) -> str:
        """The id of the cluster that this node belongs to."""
        return self.image.cluster["self"].cluster_id


#: What our own clients call themselves (KIP-511).
OWN_SOFTWARE = "barnabas"


@dataclass(slots=True)
class ConnectionInfo:
    """Who is at the other end of a connection, as far as it is known."""

    listener: str
    client_host: str
    client_port: int
    client_software_name: str = "unknown"  #: as ApiVersions told (KIP-511)
    client_software_version: str = "unknown"
    principal: str = "User:ANONYMOUS"
    authenticator: Authenticator | None = None  #: of a connection that must log in
    requests_count: int = 0
    share: Share = field(default_factory=Share)  #: of the event loop's thread

    @property
    def is_own_client(self) -> bool:
        """Whether our own client is at the other end: it alone is told of what only Barnabas has."""
        return self.client_software_name == OWN_SOFTWARE


class RequestContext:
    """One request on its way through a handler.

    Attributes with a default are set by the few requests that need them: one is made for every request.
    """

    #: an ApiVersions request of a version that we do not know, answered at version 0 (KIP-511)
    version_unsupported = False
    #: set by a handler after whose answer the connection must close
    close_after = False
    #: whether it has so many elements that even counting them takes long
    is_large = False
    #: how long the client must wait after the answer; 0: not at all
    throttle_ms = 0
    #: the span of this request while tracing is on, parent of those of what is done for it
    span: Span | None = None
    #: what policies in mode `warn` are against in what this request changes
    warnings: tuple[Refusal, ...] = ()

    def __init__(
        self,
        node: BrokerContext,
        connection: ConnectionInfo,
        api: ApiSpec,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        size_bytes: int = 0,
    ) -> None:
        """`size_bytes` is that of the request, header included."""
        self.node = node
        self.connection = connection
        self.api = api
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.size_bytes = size_bytes

    @cached_property
    def differences(self) -> list[Difference]:
        """What this request has changed elsewhere than in the store."""
        return []

    @cached_property
    def policy_results(self) -> dict[str, PolicyResult]:
        """What policies said to what this request changes, by resource."""
        return {}

    @property
    def actor(self) -> Actor:
        """Who asks."""
        return Actor(self.connection.principal, self.client_id, self.connection.client_host, self.api.name)

    async def checkpoint(self) -> None:
        """Let other clients go first if this turn of the event loop is over.

        Call it between the elements of a request. State may have changed afterwards.
        """
        await self.node.turns.checkpoint(self.connection.share)

    def each(self, elements: Iterable[ElementT]) -> "Each[ElementT]":
        """Give the elements of a large request one by one, with a `checkpoint` in between."""
        return Each(self, elements)

    async def compute(
        self,
        function: Callable[Parameters, ResultT],
        *arguments: Parameters.args,
        **keywords: Parameters.kwargs,
    ) -> ResultT:
        """Call a pure function of what does not change, for a large request in the worker's thread."""
        if self.is_large:
            return await self.node.worker.call(function, *arguments, **keywords)
        return function(*arguments, **keywords)

    def free(self, *objects: object) -> None:
        """Have a thread free the objects of a large request: it takes as long as making them.

        Call it last: the handler must return without waiting again.
        """
        if self.is_large:
            self.node.worker.free(*objects)

    async def write(
        self, decide: Callable[[MetadataImage], Decision[ResponseT]], timeout_ms: int | None = None
    ) -> ResponseT:
        """Change the cluster's state on behalf of who asks: see `MetadataWriter.write`."""
        metadata, is_large = self.node.metadata, self.is_large
        return await metadata.write(decide, timeout_ms, self.actor, self.policy_results, is_large=is_large)

    def record_change(self, resource: str, key: str, before: Any, after: Any) -> None:
        """Have the audit tell of a change elsewhere than in the store, before the request is answered."""
        if before != after:
            self.differences.append(Difference(resource, key, before, after))

    @property
    def policies(self) -> Policies:
        """The policies, which tell this request what they say."""
        return self.node.policies.with_observer(self._observe_policy)

    def _observe_policy(self, resource: str, message: str | None) -> None:
        if message is None:
            self.policy_results.setdefault(resource, PolicyResult.PASSED)
            return
        self.policy_results[resource] = PolicyResult.WARNED
        warning = Refusal(resource, ErrorCode.POLICY_VIOLATION.name, message)
        if warning not in self.warnings:  # a decision may be made twice
            self.warnings = (*self.warnings, warning)


class Each(Generic[ElementT]):
    """Elements one by one; others may be served in between, so that state may have changed."""

    def __init__(self, context: RequestContext, elements: Iterable[ElementT]) -> None:
        self._checkpoint = context.checkpoint
        self._elements = iter(elements)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ElementT:
        await self._checkpoint()
        try:
            return next(self._elements)
        except StopIteration:
            raise StopAsyncIteration from None
