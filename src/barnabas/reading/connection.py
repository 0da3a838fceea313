"""The options for connecting to a cluster, and clients with these options."""

from dataclasses import dataclass

from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.blocking import BlockingClient
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.frame_protocol import FrameMemory
from barnabas.client.core.retry import Retry
from barnabas.tls.settings import TlsSettings

#: The time limit of Spark's Kafka connector for polling existing records (`spark.network.timeout`).
POLL_TIMEOUT_MS = 120_000


@dataclass(frozen=True)
class ConnectionOptions:
    """The options for connecting to the cluster."""

    bootstrap: str  #: empty if only files are read
    client_id: str = "barnabas"
    login: SaslLogin | None = None
    tls: TlsSettings | None = None
    request_timeout_ms: int = 30_000
    retry_timeout_ms: int = POLL_TIMEOUT_MS


def new_cluster(
    options: ConnectionOptions, retry_timeout_ms: int, memory: FrameMemory | None = None
) -> ClusterClient:
    """Return a cluster that is not connected yet; `memory` for large responses may outlive it."""
    return ClusterClient(
        options.bootstrap,
        client_id=options.client_id,
        request_timeout_ms=options.request_timeout_ms,
        retry=Retry(timeout_ms=retry_timeout_ms),
        login=options.login,
        tls=options.tls,
        memory=memory,
    )


def connected(options: ConnectionOptions, request_timeout_ms: int | None = None) -> BlockingClient:
    """Return a connected client; the caller closes it.

    :raises BrokerConnectionError: No broker can be reached.
    """
    return BlockingClient(
        options.bootstrap,
        client_id=options.client_id,
        login=options.login,
        tls=options.tls,
        request_timeout_ms=request_timeout_ms or options.request_timeout_ms,
        retry=Retry(timeout_ms=options.request_timeout_ms),
    )
