"""The context of a request: the broker's parts, the connection, and the request itself."""

import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
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
from barnabas.groups.offsets.cluster_offsets import ClusterOffsets
from barnabas.groups.shard import GroupShard
from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.audit.records import Actor, PolicyResult, Refusal
from barnabas.metadata.broker_lifecycle import controller_id
from barnabas.metadata.broker_times import BrokerTimes
from barnabas.metadata.client_metrics import ClientTelemetry
from barnabas.metadata.decision import Decision, ResponseT
from barnabas.metadata.dynamic_config import DynamicConfig
from barnabas.metadata.election_rules import ElectionRules, election_rules
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.writer import MetadataWriter
from barnabas.policy import AuthenticationContext
from barnabas.policy.policies import Policies
from barnabas.quotas.manager import QuotaManager
from barnabas.replication.fetch_sessions import FetchSessionCache
from barnabas.replication.flusher import Flusher
from barnabas.replication.follower_sessions import FollowerSessions
from barnabas.replication.log_dir_moves import LogDirMoves
from barnabas.replication.producer_ids import ProducerIds
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.replication.segment_importer import SegmentImporter
from barnabas.replication.transaction_verification import TransactionVerifier
from barnabas.security.authorizer import Action, BrokerAuthorizer
from barnabas.security.sasl.authenticator import Authenticator
from barnabas.security.security_log import SecurityLog
from barnabas.telemetry.byte_rates import ByteRates
from barnabas.telemetry.tracing import Span, Tracer
from barnabas.transactions.shard import TransactionShard
from barnabas.wire.acls import ANONYMOUS_PRINCIPAL
from barnabas.wire.errors import ErrorCode, KafkaError

ElementT = TypeVar("ElementT")
Parameters = ParamSpec("Parameters")
ResultT = TypeVar("ResultT")


class EncodedResponse(NamedTuple):
    """A response body that is encoded already."""

    body: bytes | bytearray
    #: Position of `throttle_time_ms` in the body; None if the version has no such field.
    throttle_position: int | None
    #: Buffers that follow the body; they are not copied.
    rest: Sequence[Buffer] = ()


@dataclass(slots=True)
class BrokerContext:
    """The parts of a broker that handlers use."""

    broker_id: int
    dynamic_config: DynamicConfig
    clock: Clock
    rng: random.Random
    metadata: MetadataWriter
    replicas: ReplicaManager
    fetch_sessions: FetchSessionCache
    follower_sessions: FollowerSessions
    flusher: Flusher
    producer_ids: ProducerIds
    log_dir_moves: LogDirMoves
    segment_importer: SegmentImporter
    tracer: Tracer
    apis: Mapping[int, ApiSpec]
    quotas: QuotaManager
    client_telemetry: ClientTelemetry
    turns: Turns
    worker: Worker  #: for large requests
    record_worker: Worker  #: for what takes long without the interpreter: decompression of batches, keys
    groups: CoordinatorRuntime[GroupShard]
    cluster_offsets: ClusterOffsets
    transactions: CoordinatorRuntime[TransactionShard]
    security_log: SecurityLog
    broker_times: BrokerTimes
    byte_rates: ByteRates
    #: whether leaders in the image may have died just now, so that others will be elected
    expects_election: Callable[[], bool]
    policies: Policies = field(default_factory=Policies)  #: no policies unless configured
    transaction_verifier: TransactionVerifier | None = None  #: None: transactions begin without verification
    authorizer: BrokerAuthorizer | None = None  #: None: everything is allowed
    #: (version, listener, request) -> (revision, encoded response with all topics)
    metadata_responses: dict[tuple[object, ...], tuple[int, bytes]] = field(default_factory=dict)
    topic_descriptions: TopicDescriptions = field(default_factory=TopicDescriptions)

    @property
    def config(self) -> BrokerConfig:
        """The present configuration. Do not keep it: it is replaced when it changes."""
        return self.dynamic_config.current

    @property
    def election_rules(self) -> ElectionRules:
        return election_rules(self.dynamic_config, lambda: self.image)

    @property
    def controller_id(self) -> int:
        """The id of the controller. Without one it is that of this broker: every broker accepts all requests."""
        found = controller_id(self.image)
        return self.broker_id if found is None else found

    @property
    def image(self) -> MetadataImage:
        """The present metadata of the cluster."""
        return self.metadata.image

    @property
    def asks_authorizer(self) -> bool:
        """Whether a request may have to wait for the decision of a user's authorizer."""
        return self.authorizer is not None and self.authorizer.asks

    @property
    def cluster_id(self) -> str:
        return self.image.cluster["self"].cluster_id


#: Software name of our own clients (KIP-511).
OWN_SOFTWARE = "barnabas"


@dataclass(slots=True)
class ConnectionInfo:
    """The client of a connection, as far as it is known."""

    listener: str
    client_host: str
    client_port: int
    client_software_name: str = "unknown"  #: from ApiVersions (KIP-511)
    client_software_version: str = "unknown"
    principal: str = ANONYMOUS_PRINCIPAL
    is_identified: bool = False  #: whether the client has logged in, or has a certificate that names a user
    security_protocol: str = "PLAINTEXT"
    certificate: bytes | None = None  #: the client's, in DER, if a principal builder needs it
    authenticator: Authenticator | None = None  #: None if the listener requires no authentication
    requests_count: int = 0
    share: Share = field(default_factory=Share)  #: the client's share of the event loop's time

    def authentication(self, user: str, mechanism: str | None = None) -> AuthenticationContext:
        """Return what a principal builder gets."""
        return AuthenticationContext(
            listener=self.listener,
            security_protocol=self.security_protocol,
            client_address=self.client_host,
            user=user,
            sasl_mechanism=mechanism,
            certificate=self.certificate,
        )

    @property
    def is_own_client(self) -> bool:
        """Whether the client is Barnabas' own, to which its own APIs are advertised."""
        return self.client_software_name == OWN_SOFTWARE


class RequestContext:
    """One request in its handler.

    Attributes with a default are set by the few requests that need them: a context is created for every request.
    """

    #: an ApiVersions request of an unknown version, answered at version 0 (KIP-511)
    version_unsupported = False
    #: close the connection after the response
    close_after = False
    #: the request has so many elements that even counting them takes long
    is_large = False
    #: the handler may use timeouts, or wait for something else than futures (see `eager.start`)
    needs_task = True
    #: time that the client must wait after the response; 0: not throttled
    throttle_ms = 0
    #: the request counts for no quota, because it is another broker's (KIP-124)
    is_exempt = False
    #: the span of this request, if tracing is enabled
    span: Span | None = None
    #: violations of policies in mode `warn` by the changes of this request
    warnings: tuple[Refusal, ...] = ()

    def __init__(
        self,
        broker: BrokerContext,
        connection: ConnectionInfo,
        api: ApiSpec,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        size_bytes: int = 0,
    ) -> None:
        """:param size_bytes: Size of the request, header included."""
        self.broker = broker
        self.connection = connection
        self.api = api
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.size_bytes = size_bytes

    @cached_property
    def differences(self) -> list[Difference]:
        """The changes of this request outside the metadata store."""
        return []

    @cached_property
    def policy_results(self) -> dict[str, PolicyResult]:
        """The results of policies for the changes of this request, by resource."""
        return {}

    @cached_property
    def decisions(self) -> dict[Action, bool]:
        """The decisions of a user's authorizer for this request; those of the built-in one are not kept."""
        return {}

    @property
    def actor(self) -> Actor:
        return Actor(self.connection.principal, self.client_id, self.connection.client_host, self.api.name)

    async def checkpoint(self) -> None:
        """Serve other clients first if this turn of the event loop is over.

        Call it between the elements of a request. State may have changed afterwards.
        """
        await self.broker.turns.checkpoint(self.connection.share)

    def each(self, elements: Iterable[ElementT]) -> "Each[ElementT]":
        """Iterate over the elements of a large request, with a `checkpoint` in between."""
        return Each(self, elements)

    async def compute(
        self,
        function: Callable[Parameters, ResultT],
        *arguments: Parameters.args,
        **keywords: Parameters.kwargs,
    ) -> ResultT:
        """Call a pure function of immutable arguments; for a large request, in a worker thread."""
        if self.is_large:
            return await self.broker.worker.call(function, *arguments, **keywords)
        return function(*arguments, **keywords)

    def free(self, *objects: object) -> None:
        """Free the objects of a large request in a thread, because that takes as long as creating them.

        Call it last: the handler must return without waiting again.
        """
        if self.is_large:
            self.broker.worker.free(*objects)

    async def write(
        self, decide: Callable[[MetadataImage], Decision[ResponseT]], timeout_ms: int | None = None
    ) -> ResponseT:
        """Change the metadata on behalf of the principal; see `MetadataWriter.write`."""
        metadata, is_large = self.broker.metadata, self.is_large
        return await metadata.write(decide, timeout_ms, self.actor, self.policy_results, is_large=is_large)

    async def write_each(
        self,
        items: Sequence[ElementT],
        decide: Callable[[MetadataImage, Sequence[ElementT]], Decision[list[ResponseT]]],
        failed: Callable[[ElementT, KafkaError], ResponseT],
        timeout_ms: int | None = None,
        *,
        key: Callable[[ElementT], Hashable] = id,
    ) -> list[ResponseT]:
        """Change each of some resources on behalf of the principal; see `MetadataWriter.write_each`."""
        return await self.broker.metadata.write_each(
            items,
            decide,
            failed,
            timeout_ms,
            self.actor,
            self.policy_results,
            key=key,
            is_large=self.is_large,
        )

    def record_change(self, resource: str, key: str, before: Any, after: Any) -> None:
        """Record a change outside the metadata store in the audit, before the response is sent."""
        if before != after:
            self.differences.append(Difference(resource, key, before, after))

    @property
    def policies(self) -> Policies:
        """The policies, whose results are recorded in this context."""
        return self.broker.policies.with_observer(self._observe_policy)

    def _observe_policy(self, resource: str, message: str | None) -> None:
        if message is None:
            self.policy_results.setdefault(resource, PolicyResult.PASSED)
            return
        self.policy_results[resource] = PolicyResult.WARNED
        warning = Refusal(resource, ErrorCode.POLICY_VIOLATION.name, message)
        if warning not in self.warnings:  # a decision may be made twice
            self.warnings = (*self.warnings, warning)


class Each(Generic[ElementT]):
    """Asynchronous iterator over elements; state may have changed after each."""

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
