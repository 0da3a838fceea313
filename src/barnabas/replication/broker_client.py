"""Requests from this broker to the others of its cluster."""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Any, Protocol

from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.connection import BrokerConnection
from barnabas.client.core.errors import BrokerConnectionError, BrokerUnreachable
from barnabas.metadata.image import MetadataImage
from barnabas.wire.schema import Message

CONNECT_TIMEOUT_MS = 2_000


def client_id_of(broker_id: int) -> str:
    """Return the client id of the requests of a broker to others."""
    return f"broker-{broker_id}"


class BrokerSecurity(Protocol):
    """How connections to other brokers are secured."""

    def login(self) -> SaslLogin | None: ...

    def tls(self) -> ssl.SSLContext | None: ...


class BrokerClient:
    """Holds a connection to each broker that was asked something; a lost one is opened again by the next request."""

    def __init__(
        self,
        broker_id: int,
        image: Callable[[], MetadataImage],
        listener: str,
        *,
        security: BrokerSecurity,
        request_timeout_ms: int,
    ) -> None:
        """:param listener: Name of the listener for connections between brokers."""
        self._client_id = client_id_of(broker_id)
        self._image = image
        self._listener = listener
        self._request_timeout_ms = request_timeout_ms
        self._security = security
        self._connections: dict[int, BrokerConnection] = {}
        self._opening: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._blocked: frozenset[int] = frozenset()
        self.connections_count = 0  #: that were opened
        self.failures_count = 0

    async def send(self, broker_id: int, request: Message) -> Any:
        """Send a request to a broker and return its response.

        :raises BrokerConnectionError: If the broker is not registered, does not respond, or the connection breaks.
        :raises KafkaError: If the broker does not support the request.
        """
        # A task of its own, because requests are handled without one until they wait, and timeouts need one.
        return await asyncio.get_running_loop().create_task(self._send(broker_id, request))

    async def _send(self, broker_id: int, request: Message) -> Any:
        try:
            connection = await self._connection(broker_id)
            return await connection.send(request)
        except BrokerConnectionError:
            self.failures_count += 1
            raise

    async def _connection(self, broker_id: int) -> BrokerConnection:
        async with self._opening[broker_id]:
            address = self._address_of(broker_id)
            if broker_id in self._blocked:
                raise BrokerUnreachable(address, f"a test blocks requests to broker {broker_id}")
            connection = self._connections.get(broker_id)
            if connection is not None and connection.is_open and connection.address == address:
                return connection
            if connection is not None:
                await connection.close()
            connection = await BrokerConnection.open(
                address,
                client_id=self._client_id,
                connect_timeout_ms=CONNECT_TIMEOUT_MS,
                request_timeout_ms=self._request_timeout_ms,
                login=self._security.login(),
                tls=self._security.tls(),
            )
            self._connections[broker_id] = connection
            self.connections_count += 1
            return connection

    def _address_of(self, broker_id: int) -> BrokerAddress:
        broker = self._image().brokers.get(str(broker_id))
        endpoint = broker.endpoint(self._listener) if broker is not None else None
        if endpoint is None:
            nowhere = BrokerAddress("", 0)
            raise BrokerUnreachable(nowhere, f"broker {broker_id} has no listener {self._listener}")
        return BrokerAddress(endpoint.host, endpoint.port)

    def failed_s(self, broker_id: int) -> float | None:
        """Return when the connection to a broker was lost, on the loop's clock; None if it is open or never was."""
        connection = self._connections.get(broker_id)
        return None if connection is None else connection.failed_s

    def block(self, broker_ids: Collection[int]) -> None:
        """Refuse requests to these brokers from now on, and end those that wait; for tests."""
        self._blocked = frozenset(broker_ids)
        for broker_id in self._blocked & self._connections.keys():
            self._connections.pop(broker_id).abort()

    async def close(self) -> None:
        await asyncio.gather(*(connection.close() for connection in self._connections.values()))
        self._connections.clear()

    def statistics(self) -> dict[str, int]:
        return {
            "open_count": sum(connection.is_open for connection in self._connections.values()),
            "connections_count": self.connections_count,
            "failures_count": self.failures_count,
        }
