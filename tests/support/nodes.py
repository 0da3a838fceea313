"""One broker without sockets: the rooms below `net`, put together on a directory and a store in memory."""

import random
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import barnabas.api
from barnabas.api import registry
from barnabas.api.context import ConnectionInfo, Node, RequestContext
from barnabas.api.dispatch import Dispatcher, Parts
from barnabas.base.clock import ManualClock
from barnabas.base.turns import Turns
from barnabas.base.worker import Worker
from barnabas.config.broker_config import BrokerConfig
from barnabas.log.log_manager import LogManager
from barnabas.metadata.audit.auditor import Auditor
from barnabas.metadata.audit.stored_history import decide_keep_history
from barnabas.metadata.brokers import decide_register
from barnabas.metadata.client_metrics import ClientTelemetry
from barnabas.metadata.cluster import decide_form
from barnabas.metadata.dynamic_config import DynamicConfig
from barnabas.metadata.features import decide_finalize, supported_features
from barnabas.metadata.topic_creation import TopicToCreate, decide_create
from barnabas.metadata.writer import MetadataWriter
from barnabas.quotas.manager import QuotaManager
from barnabas.replication.fetch_sessions import FetchSessionCache
from barnabas.replication.flusher import Flusher
from barnabas.replication.log_configs import cordons, log_config
from barnabas.replication.log_dir_moves import LogDirMoves
from barnabas.replication.log_importer import Handovers
from barnabas.replication.partition import Partition
from barnabas.replication.producer_ids import ProducerIds
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.security.authorizer import configured_authorizer
from barnabas.security.security_log import SecurityLog
from barnabas.server.coordinators import Coordinators
from barnabas.telemetry.requests import RequestStatistics
from barnabas.telemetry.tracing import Tracer
from barnabas.wire.barnabas_messages import is_kafka_api
from barnabas.wire.codec import decode, encode
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.schema import Message
from support.images import LISTENER, RULES, broker
from support.memory_store import MemoryStore

MessageT = TypeVar("MessageT", bound=Message)

APIS = registry.build(barnabas.api)

#: Those that Apache Kafka has, too.
KAFKA_APIS = {key: spec for key, spec in APIS.items() if is_kafka_api(key)}

#: Those of them that ApiVersions names while nothing consumes client telemetry.
ADVERTISED_APIS = {key: spec for key, spec in KAFKA_APIS.items() if key not in (71, 72)}


@dataclass
class RunningNode:
    """A node, and what tests do with it."""

    node: Node
    dispatcher: Dispatcher
    clock: ManualClock
    store: MemoryStore
    directories: LogManager
    connection: ConnectionInfo

    async def create(self, *topics: TopicToCreate) -> None:
        """Create topics, whatever the broker's configuration says."""
        rng = self.node.rng
        outcomes = await self.node.metadata.write(
            lambda image: decide_create(image, topics, RULES, rng, validate_only=False)
        )
        assert not [outcome.error for outcome in outcomes if outcome.error]

    def partition(self, topic: str, index: int = 0) -> Partition:
        return self.node.replicas.partition(topic, index)

    def topic_id(self, topic: str) -> bytes:
        return self.node.image.topics[topic].topic_id

    async def send(self, frame: bytes) -> bytes | None:
        """The whole answer to a request's frame, size included, as the connection would write it."""
        _, answer = self.begin(frame)
        parts = await answer if isinstance(answer, Coroutine) else answer
        return None if parts is None else b"".join(parts)

    def begin(self, frame: bytes) -> tuple[RequestContext, Parts | Coroutine[Any, Any, Parts]]:
        return self.dispatcher.begin(memoryview(bytearray(frame)), self.connection)

    def context(self, api_key: int = CreateTopicsRequest.API_KEY) -> RequestContext:
        """A request of nobody in particular, on its way."""
        return RequestContext(
            self.node, self.connection, APIS[api_key], APIS[api_key].versions.last, 7, "test"
        )

    async def ask(self, request: Message, version: int | None = None) -> Any:
        """The response message to a request, at our highest version or at `version`."""
        spec = APIS[request.API_KEY]
        at = spec.versions.last if version is None else version
        answer = await self.send(frame_of(request, at))
        return None if answer is None else response_of(spec.response, at, answer)


def frame_of(
    request: Message, version: int, correlation_id: int = 7, client_id: str | None = "test"
) -> bytes:
    """A request as it stands in its frame: header v1, or v2 where the version is flexible, and body."""
    out = bytearray()
    out += request.API_KEY.to_bytes(2, "big") + version.to_bytes(2, "big") + correlation_id.to_bytes(4, "big")
    text = None if client_id is None else client_id.encode()
    out += b"\xff\xff" if text is None else len(text).to_bytes(2, "big") + text
    if version in request.FLEXIBLE:
        out.append(0)
    return bytes(encode(request, version, out))


def response_of(response: type[MessageT], version: int, answer: bytes, correlation_id: int = 7) -> MessageT:
    """The message in an answer, whose size and header are checked."""
    assert int.from_bytes(answer[:4], "big") == len(answer) - 4
    assert int.from_bytes(answer[4:8], "big") == correlation_id
    position = 8
    if version in response.FLEXIBLE and response.API_KEY != 18:
        assert answer[8] == 0
        position = 9
    message = decode(response, version, answer, position)
    assert encode(message, version, bytearray(answer[:position])) == answer, "bytes are left over"
    return message


def config_of(directory: Path, **overrides: str) -> BrokerConfig:
    """A broker's configuration; keys have underscores for their dots."""
    settings: Mapping[str, str] = {key.replace("_", "."): value for key, value in overrides.items()}
    defaults = {"node.id": "1", "log.dirs": str(directory), "listeners": f"{LISTENER}://127.0.0.1:0"}
    return BrokerConfig({**defaults, **settings})


def _open_directories(
    dynamic: DynamicConfig, cluster_id: str, clock: ManualClock, rng: random.Random
) -> LogManager:
    paths = [Path(path) for path in dynamic.static.log_dirs]
    directories = LogManager.open(paths, cluster_id=cluster_id, node_id=1, clock=clock, random=rng)
    directories.cordons = lambda path: cordons(dynamic.current, path)
    return directories


async def _form(metadata: MetadataWriter, rng: random.Random, *, audited: bool) -> str:
    """Form the cluster with broker 1 in it; gives its id."""
    await metadata.write(lambda image: decide_keep_history(image, wanted=audited))
    cluster_id = await metadata.write(lambda image: decide_form(image.cluster, rng.randbytes(16), None))
    supported = supported_features(APIS)
    await metadata.write(lambda image: decide_finalize(image.finalized_features, supported))
    await metadata.write(lambda image: decide_register(image.brokers, broker(1)))
    return cluster_id


def _moves(
    replicas: ReplicaManager, flusher: Flusher, dynamic: DynamicConfig, clock: ManualClock
) -> LogDirMoves:
    throttled = "replica.alter.log.dirs.io.max.bytes.per.second"
    moves = LogDirMoves(replicas, flusher, clock, lambda: dynamic.current.integer(throttled), 2)
    moves.resume()
    return moves


def _fetch_sessions(config: BrokerConfig, clock: ManualClock, rng: random.Random) -> FetchSessionCache:
    slots_count = config.integer("max.incremental.fetch.session.cache.slots")
    return FetchSessionCache(slots_count, clock, rng)


def _coordinators(dynamic: DynamicConfig, metadata: MetadataWriter, *parts: Any) -> Coordinators:
    coordinators = Coordinators(lambda: dynamic.current, lambda: metadata.image, *parts)
    coordinators.follow(metadata)
    return coordinators


def _quotas_and_telemetry(
    metadata: MetadataWriter, config: BrokerConfig, clock: ManualClock
) -> tuple[QuotaManager, ClientTelemetry]:
    """Quotas and client telemetry, which follow the image."""
    quotas, client_telemetry = QuotaManager(config, clock), ClientTelemetry(clock)
    metadata.listen(quotas.apply)
    metadata.listen(client_telemetry.apply)
    return quotas, client_telemetry


def _replicas(dynamic: DynamicConfig, metadata: MetadataWriter, directories: LogManager) -> ReplicaManager:
    """The replicas, which follow the image and the configuration."""
    replicas = ReplicaManager(1, directories, lambda topic, own: log_config(dynamic.current, own))
    replicas.load(metadata.image)
    metadata.listen(replicas.apply)

    async def reconfigure(before: BrokerConfig, after: BrokerConfig) -> None:
        await replicas.reconfigure_all()

    dynamic.follow(reconfigure)
    return replicas


@asynccontextmanager
async def running_node(
    directory: Path,
    store: MemoryStore | None = None,
    *,
    seed: int = 0,
    audited: bool = False,
    **overrides: str,
) -> AsyncIterator[RunningNode]:
    """A node on `directory`, registered as broker 1, until the block ends; its store keeps what is audited."""
    config = config_of(directory, **overrides)
    clock, rng, flusher = ManualClock(), random.Random(seed), Flusher()
    store = store or MemoryStore()
    metadata = MetadataWriter(store, Auditor(clock, random.Random(seed)) if audited else None)
    await metadata.start()
    dynamic = DynamicConfig(config)
    dynamic.load(metadata.image)
    metadata.listen(dynamic.apply)
    cluster_id = await _form(metadata, rng, audited=audited)
    directories = _open_directories(dynamic, cluster_id, clock, rng)
    directories.load(lambda topic: log_config(config, metadata.image.topic_configs.get(topic, {})))
    replicas = _replicas(dynamic, metadata, directories)
    quotas, client_telemetry = _quotas_and_telemetry(metadata, config, clock)
    moves = _moves(replicas, flusher, dynamic, clock)
    producer_ids = ProducerIds(metadata)
    coordinators = _coordinators(dynamic, metadata, replicas, flusher, clock, rng, producer_ids)
    node = Node(
        broker_id=1,
        dynamic_config=dynamic,
        clock=clock,
        rng=rng,
        metadata=metadata,
        replicas=replicas,
        fetch_sessions=_fetch_sessions(config, clock, rng),
        flusher=flusher,
        producer_ids=producer_ids,
        log_dir_moves=moves,
        handovers=Handovers(replicas.directories, clock),
        tracer=Tracer.disabled(),
        apis=APIS,
        quotas=quotas,
        client_telemetry=client_telemetry,
        turns=Turns(clock.monotonic_ns),
        worker=Worker(),
        groups=coordinators.groups,
        transactions=coordinators.transactions,
        transaction_verifier=coordinators.verifier,
        authorizer=configured_authorizer(config, metadata, clock),
        security_log=SecurityLog(clock),
    )
    dispatcher = Dispatcher(node, RequestStatistics())
    connection = ConnectionInfo(LISTENER, "client", 1234)
    try:
        yield RunningNode(node, dispatcher, clock, store, directories, connection)
    finally:
        await coordinators.stop()
        await moves.stop()
        await flusher.close()
        node.worker.close()
        await metadata.stop()
        directories.close()
