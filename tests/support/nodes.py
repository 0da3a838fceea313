"""One broker without sockets: the packages below `net`, assembled on a directory and a store in memory."""

import random
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import barnabas.api
from barnabas.api import registry
from barnabas.api.context import BrokerContext, ConnectionInfo, RequestContext
from barnabas.api.dispatch import Dispatcher, Parts
from barnabas.base.clock import ManualClock
from barnabas.config.broker_config import BrokerConfig
from barnabas.log.log_manager import LogManager
from barnabas.metadata.brokers import decide_register
from barnabas.metadata.features import decide_finalize, supported_features
from barnabas.metadata.topic_creation import TopicToCreate, decide_create
from barnabas.policy.policies import Policies
from barnabas.replication.partition import Partition
from barnabas.server.assembly import BrokerParts, Environment, assemble
from barnabas.server.shutdown import Shutdown
from barnabas.wire.barnabas_messages import is_kafka_api
from barnabas.wire.codec import decode, encode
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.schema import Message
from support.images import LISTENER, RULES, broker
from support.memory_store import MemoryStore

MessageT = TypeVar("MessageT", bound=Message)

APIS = registry.build(barnabas.api)

#: APIs that Apache Kafka has, too.
KAFKA_APIS = {key: spec for key, spec in APIS.items() if is_kafka_api(key)}

#: APIs that ApiVersions names while no client telemetry is collected.
ADVERTISED_APIS = {key: spec for key, spec in KAFKA_APIS.items() if key not in (71, 72)}


@dataclass
class RunningNode:
    """A node with helpers for tests."""

    parts: BrokerParts
    connection: ConnectionInfo

    @property
    def broker(self) -> BrokerContext:
        return self.parts.broker

    @property
    def dispatcher(self) -> Dispatcher:
        return self.parts.dispatcher

    @property
    def clock(self) -> ManualClock:
        clock = self.parts.environment.clock
        assert isinstance(clock, ManualClock)
        return clock

    @property
    def store(self) -> MemoryStore:
        store = self.parts.environment.store
        assert isinstance(store, MemoryStore)
        return store

    @property
    def log_manager(self) -> LogManager:
        return self.parts.log_manager

    async def create(self, *topics: TopicToCreate) -> None:
        """Create topics, whatever the broker's configuration says."""
        rng = self.broker.rng
        outcomes = await self.broker.metadata.write(
            lambda image: decide_create(image, topics, RULES, rng, validate_only=False)
        )
        assert not [outcome.error for outcome in outcomes if outcome.error]

    def partition(self, topic: str, index: int = 0) -> Partition:
        return self.broker.replicas.partition(topic, index)

    def topic_id(self, topic: str) -> bytes:
        return self.broker.image.topics[topic].topic_id

    async def send(self, frame: bytes) -> bytes | None:
        """Return the complete response to a request's frame, with its size, as the connection would write it."""
        _, answer = self.begin(frame)
        parts = await answer if isinstance(answer, Coroutine) else answer
        return None if parts is None else b"".join(parts)

    def begin(self, frame: bytes) -> tuple[RequestContext, Parts | Coroutine[Any, Any, Parts]]:
        return self.dispatcher.begin(memoryview(bytearray(frame)), self.connection)

    def context(self, api_key: int = CreateTopicsRequest.API_KEY) -> RequestContext:
        """Build the context of a request in progress."""
        return RequestContext(
            self.broker, self.connection, APIS[api_key], APIS[api_key].versions.last, 7, "test"
        )

    async def ask(self, request: Message, version: int | None = None) -> Any:
        """Return the response to a request, at our highest version or at `version`."""
        spec = APIS[request.API_KEY]
        at = spec.versions.last if version is None else version
        answer = await self.send(frame_of(request, at))
        return None if answer is None else response_of(spec.response, at, answer)


def frame_of(
    request: Message, version: int, correlation_id: int = 7, client_id: str | None = "test"
) -> bytes:
    """Encode a request as a frame: header v1, or v2 where the version is flexible, and body."""
    out = bytearray()
    out += request.API_KEY.to_bytes(2, "big") + version.to_bytes(2, "big") + correlation_id.to_bytes(4, "big")
    text = None if client_id is None else client_id.encode()
    out += b"\xff\xff" if text is None else len(text).to_bytes(2, "big") + text
    if version in request.FLEXIBLE:
        out.append(0)
    return bytes(encode(request, version, out))


def response_of(response: type[MessageT], version: int, answer: bytes, correlation_id: int = 7) -> MessageT:
    """Decode a response whose size and header are checked."""
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
    """Build a broker's configuration; keys have underscores for dots."""
    settings: Mapping[str, str] = {key.replace("_", "."): value for key, value in overrides.items()}
    defaults = {"node.id": "1", "log.dirs": str(directory), "listeners": f"{LISTENER}://127.0.0.1:0"}
    return BrokerConfig({**defaults, **settings})


@asynccontextmanager
async def running_node(
    directory: Path,
    store: MemoryStore | None = None,
    *,
    seed: int = 0,
    audited: bool = False,
    **overrides: str,
) -> AsyncIterator[RunningNode]:
    """Assemble a broker without sockets on `directory`, registered as broker 1, until the block ends.

    :param audited: Keep the audit records of changes in the store; nothing publishes them.
    """
    overrides.setdefault("barnabas_audit_enable", str(audited).lower())
    environment = Environment(store or MemoryStore(), ManualClock(), random.Random(seed))
    shutdown = Shutdown()
    try:
        parts = await assemble(config_of(directory, **overrides), environment, Policies(), shutdown)
        supported = supported_features(APIS)
        await parts.metadata.write(lambda image: decide_finalize(image.finalized_features, supported))
        await parts.metadata.write(lambda image: decide_register(image.brokers, broker(1)))
        parts.coordinators.start(parts.metadata)
        parts.broker.log_dir_moves.resume()
        yield RunningNode(parts, ConnectionInfo(LISTENER, "client", 1234))
    finally:
        await shutdown.run()
