"""Connections to a cluster: bootstrap, one connection per broker and lane, metadata, leaders, retries."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from barnabas.base.ids import TopicPartition
from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.core.address import BrokerAddress, parse_bootstrap
from barnabas.client.core.connection import CONNECT_TIMEOUT_MS, REQUEST_TIMEOUT_MS, BrokerConnection
from barnabas.client.core.errors import BrokerConnectionError, BrokerUnreachable
from barnabas.client.core.frame_protocol import FrameMemory
from barnabas.client.core.metadata import Metadata, TopicInfo
from barnabas.client.core.retry import Retry
from barnabas.tls.contexts import client_context
from barnabas.tls.settings import TlsSettings
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.wire.schema import Message

ResultT = TypeVar("ResultT")

METADATA_MAX_AGE_MS = 300_000

#: Requests in different lanes use different connections, so that a long poll delays no other request.
MAIN_LANE = "main"


class ClusterClient:
    """Connections to the brokers of one cluster; an async context manager, or `connect` and `close`."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        client_id: str = "barnabas",
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
        request_timeout_ms: int = REQUEST_TIMEOUT_MS,
        retry: Retry | None = None,
        login: SaslLogin | None = None,
        tls: TlsSettings | None = None,
        memory: FrameMemory | None = None,
    ) -> None:
        """:param login: The login for every connection; None where the brokers require none.
        :param tls: How every connection is encrypted; None for connections without TLS.
        :param memory: Memory for large responses on all connections, if it is to outlive them.
        :raises TlsError: When a setting of `tls` cannot be used.
        """
        self.bootstrap = parse_bootstrap(bootstrap)
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self.retry = retry or Retry()
        self.metadata = Metadata()  #: the latest metadata
        self._connect_timeout_ms = connect_timeout_ms
        self._login = login
        self._tls = None if tls is None else client_context(tls)
        self._memory = memory
        self._connections: dict[tuple[BrokerAddress, str], asyncio.Task[BrokerConnection]] = {}
        self._refreshed_ms = 0
        self._stale = True

    async def __aenter__(self) -> Self:
        try:
            await self.connect()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def connect(self) -> None:
        """Connect to one of the bootstrap brokers and fetch metadata.

        :raises BrokerConnectionError: When no bootstrap broker can be reached.
        :raises KafkaError: When the login fails.
        """
        await self.refresh([])

    async def close(self) -> None:
        """Close every connection; requests without a response fail."""
        tasks = list(self._connections.values())
        self._connections.clear()
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, BrokerConnection):
                await outcome.close()

    async def send(
        self,
        request: Message,
        node: int | None = None,
        *,
        lane: str = MAIN_LANE,
        version_max: int | None = None,
        timeout_ms: int | None = None,
    ) -> Any:
        """Send a request to one broker (`node`, or any), once, and return its response.

        The caller reads the error codes in the response.

        :raises KafkaError: BROKER_NOT_AVAILABLE for an unknown node; UNSUPPORTED_VERSION.
        :raises BrokerConnectionError: When no response came.
        """
        connection = await self.connection(node, lane)
        return await connection.send(request, version_max=version_max, timeout_ms=timeout_ms)

    async def connection(self, node: int | None = None, lane: str = MAIN_LANE) -> BrokerConnection:
        """Return an open connection to `node`, or to any broker that can be reached.

        :raises KafkaError: BROKER_NOT_AVAILABLE for an unknown node.
        :raises BrokerConnectionError: When it cannot be reached.
        """
        if node is None:
            return await self._any_connection(lane)
        if node not in self.metadata.nodes:
            await self.refresh([])
        address = self.metadata.node(node).address
        try:
            return await self._connection_to(address, lane)
        except BrokerUnreachable as error:
            hint = f"{error}; broker {node} advertises this address (advertised.listeners)"
            raise BrokerUnreachable(address, hint) from error

    async def refresh(self, topics: Collection[str] | None = None, *, auto_create: bool = False) -> Metadata:
        """Fetch metadata of the brokers and of `topics` (None: all topics); return all cached metadata.

        :raises KafkaError: UNSUPPORTED_VERSION. Errors of topics are kept with the topics.
        :raises BrokerConnectionError: When no broker responds.
        """
        requested = None if topics is None else [MetadataRequestTopic(name=name) for name in sorted(topics)]
        request = MetadataRequest(topics=requested, allow_auto_topic_creation=auto_create)
        response: MetadataResponse = await self.send(request)
        complete = topics is None or self.metadata.topics.keys() <= set(topics)
        self.metadata = self.metadata.updated(response, complete=topics is None)
        if complete:
            self._stale = False
            self._refreshed_ms = self.retry.clock.monotonic_ms()
        return self.metadata

    def invalidate(self) -> None:
        """Make the next `topic` fetch metadata again, because leaders have moved."""
        self._stale = True

    async def topic(self, name: str, *, auto_create: bool = False) -> TopicInfo:
        """Return the topic's cached metadata, fetched if it is not cached.

        :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, or another error of the topic.
        """
        known = self.cached_topic(name)
        if known is not None:
            return known
        if auto_create:
            await self.refresh([name], auto_create=True)  # only this topic: others may have been deleted
        if not auto_create or self._is_old:
            await self.refresh({*self.metadata.topics, name})
        return self.metadata.topic(name)

    def cached_topic(self, name: str) -> TopicInfo | None:
        """Return the topic's cached metadata, unless it is too old or an error."""
        if self._is_old:
            return None
        known = self.metadata.topics.get(name)
        return None if known is None or known.error is not None else known

    @property
    def _is_old(self) -> bool:
        """Whether the metadata is older than its maximum age."""
        age_ms = self.retry.clock.monotonic_ms() - self._refreshed_ms
        return self._stale or age_ms > METADATA_MAX_AGE_MS

    async def leader(self, tp: TopicPartition) -> int:
        """Return the node id of a partition's leader, fetched if it is not known.

        :raises KafkaError: LEADER_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION.
        """
        await self.topic(tp.topic)
        try:
            return self.metadata.leader(tp)
        except KafkaError:
            await self.refresh([tp.topic])
            return self.metadata.leader(tp)

    async def retrying(
        self, attempt: Callable[[], Awaitable[ResultT]], timeout_ms: int | None = None
    ) -> ResultT:
        """Call `attempt` until it succeeds or raises an error that is not retriable; refresh metadata after each
        failure.

        :raises Exception: The last failure of `attempt`.
        """

        async def fresh() -> ResultT:
            try:
                return await attempt()
            except Exception:
                self.invalidate()
                raise

        return await self.retry.run(fresh, timeout_ms)

    async def _any_connection(self, lane: str) -> BrokerConnection:
        failures = []
        for address in self._candidates(lane):
            try:
                return await self._connection_to(address, lane)
            except BrokerConnectionError as error:
                failures.append(error)
        if len(failures) == 1:
            raise failures[0]
        message = "none of the brokers can be reached: " + "; ".join(str(failure) for failure in failures)
        raise BrokerUnreachable(self.bootstrap[0], message)

    def _candidates(self, lane: str) -> list[BrokerAddress]:
        """Return the addresses to try for any broker: open connections first, then known brokers, then the bootstrap
        addresses.
        """
        known = [node.address for node in self.metadata.nodes.values()]
        everyone = list(dict.fromkeys([*known, *self.bootstrap]))
        self.retry.random.shuffle(everyone)
        return sorted(everyone, key=lambda address: _opened(self._connections.get((address, lane))) is None)

    async def _connection_to(self, address: BrokerAddress, lane: str) -> BrokerConnection:
        task = self._connections.get((address, lane))
        if task is None or (task.done() and _opened(task) is None):
            opening = BrokerConnection.open(
                address,
                client_id=self.client_id,
                connect_timeout_ms=self._connect_timeout_ms,
                request_timeout_ms=self.request_timeout_ms,
                login=self._login,
                tls=self._tls,
                memory=self._memory,
            )
            task = asyncio.ensure_future(opening)
            self._connections[address, lane] = task
        return await asyncio.shield(task)


def _opened(task: asyncio.Task[BrokerConnection] | None) -> BrokerConnection | None:
    """Return the connection that the task opened, while it is open."""
    if task is None or not task.done() or task.cancelled() or task.exception() is not None:
        return None
    return task.result() if task.result().is_open else None
