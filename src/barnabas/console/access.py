"""A cluster as one principal sees it: connections, and caches of what they returned."""

import asyncio
from typing import NamedTuple

from barnabas.base.clock import Clock
from barnabas.client.admin.admin import Admin
from barnabas.client.auth.sasl import PASSWORD_MECHANISMS, SaslLogin
from barnabas.client.core.address import BrokerAddress, parse_bootstrap
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.connection import BrokerConnection
from barnabas.client.core.errors import BrokerConnectionError, BrokerUnreachable, check
from barnabas.client.core.metadata import Node
from barnabas.client.core.retry import Retry
from barnabas.console.audit_follower import AuditFollower
from barnabas.console.cached_value import Snapshot
from barnabas.console.lag_sampler import LagSampler
from barnabas.console.permissions import EVERYTHING, operations_in
from barnabas.console.settings import ConsoleSettings
from barnabas.console.throughput import Throughput
from barnabas.console.topic_list import list_topics
from barnabas.tls.contexts import client_context
from barnabas.wire.acls import ANONYMOUS_PRINCIPAL
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

CLIENT_ID = "barnabas-console"
_FRESH_MS = 5_000
_STALE_MS = 60_000


class ClusterView(NamedTuple):
    """The cluster, and the operations that the principal may do on it (names of AclOperation)."""

    cluster_id: str
    controller_id: int
    nodes: tuple[Node, ...]
    operations: frozenset[str]


class Access:
    """The connections of one principal. They open when needed; `close` them."""

    def __init__(self, settings: ConsoleSettings, clock: Clock, login: SaslLogin | None) -> None:
        self.principal = ANONYMOUS_PRINCIPAL if login is None else f"User:{login.user}"
        self.clock = clock
        self.login = login
        self.cluster = ClusterClient(
            settings.bootstrap,
            client_id=CLIENT_ID,
            connect_timeout_ms=settings.connect_timeout_ms,
            request_timeout_ms=settings.request_timeout_ms,
            retry=Retry(timeout_ms=settings.retry_timeout_ms, clock=clock),
            login=login,
            tls=settings.tls,
        )
        self.admin = Admin(self.cluster, timeout_ms=settings.request_timeout_ms)
        self._view = Snapshot(self._describe, clock, fresh_ms=_FRESH_MS, stale_ms=_STALE_MS)
        self.lags = LagSampler(self.cluster, clock)  #: lags of groups over time
        self.throughput = Throughput(self.admin, clock)
        self.audit = AuditFollower(self.cluster)  #: the audit events shown last
        #: every topic that the principal may see; `clear` it after a change
        self.topics = Snapshot(lambda: list_topics(self.admin), clock, fresh_ms=_FRESH_MS, stale_ms=_STALE_MS)

    async def view(self) -> ClusterView:
        """The cluster, at most a few seconds old.

        :raises BrokerConnectionError: When no broker responds.
        :raises KafkaError: When the login is refused.
        """
        return await self._view.get()

    async def close(self) -> None:
        """End the connections."""
        self._view.close()
        self.topics.close()
        await self.lags.stop()
        await self.cluster.close()

    async def _describe(self) -> ClusterView:
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        try:
            response: DescribeClusterResponse = await self.admin.send(request)
        except KafkaError as error:
            if error.code is not ErrorCode.UNSUPPORTED_VERSION:
                raise
            metadata = await self.cluster.refresh([])
            nodes = tuple(metadata.nodes.values())
            return ClusterView(metadata.cluster_id or "", metadata.controller_id, nodes, EVERYTHING)
        check(response.error_code, response.error_message)
        nodes = tuple(
            Node(each.broker_id, BrokerAddress(each.host, each.port), each.rack)
            for each in sorted(response.brokers, key=lambda each: each.broker_id)
        )
        operations = operations_in(response.cluster_authorized_operations)
        return ClusterView(response.cluster_id, response.controller_id, nodes, operations)


async def offered_mechanisms(settings: ConsoleSettings) -> tuple[str, ...]:
    """The mechanisms for logging in that the cluster and this client support; empty if no login is required.

    :raises BrokerConnectionError: When no broker responds.
    """
    failure: BrokerConnectionError | None = None
    for address in parse_bootstrap(settings.bootstrap):
        try:
            return await _offered_at(address, settings)
        except BrokerConnectionError as error:
            failure = error
    assert failure is not None
    raise BrokerUnreachable(failure.address, str(failure)) from failure


async def _offered_at(address: BrokerAddress, settings: ConsoleSettings) -> tuple[str, ...]:
    """Ask for a mechanism that does not exist: the error response lists the enabled ones."""
    connection = await BrokerConnection.open(
        address,
        client_id=CLIENT_ID,
        connect_timeout_ms=settings.connect_timeout_ms,
        request_timeout_ms=settings.request_timeout_ms,
        tls=None if settings.tls is None else client_context(settings.tls),
    )
    try:
        response: SaslHandshakeResponse = await connection.send(SaslHandshakeRequest(mechanism="NONE"))
    finally:
        await asyncio.shield(connection.close())
    if response.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        return ()
    known = [mechanism for mechanism in reversed(PASSWORD_MECHANISMS) if mechanism in response.mechanisms]
    if not known:
        offered = ", ".join(response.mechanisms)
        message = f"{address} offers the mechanisms {offered}; this console supports {', '.join(PASSWORD_MECHANISMS)}"
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, message)
    return tuple(known)
