"""Run asynchronous client code from a command."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from barnabas.cli.support.login import current_login, current_tls
from barnabas.client.admin.admin import Admin
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.connection import REQUEST_TIMEOUT_MS

ResultT = TypeVar("ResultT")


def with_cluster(
    bootstrap: str,
    work: Callable[[ClusterClient], Awaitable[ResultT]],
    request_timeout_ms: int = REQUEST_TIMEOUT_MS,
) -> ResultT:
    """Connect to the cluster, run `work`, disconnect, and return the result of `work`.

    :raises BrokerConnectionError: If no broker responds.
    :raises KafkaError: If a broker responds with an error.
    """

    async def run() -> ResultT:
        async with ClusterClient(
            bootstrap,
            client_id="barnabas-cli",
            request_timeout_ms=request_timeout_ms,
            login=current_login(),
            tls=current_tls(),
        ) as cluster:
            return await work(cluster)

    return asyncio.run(run())


def with_admin(bootstrap: str, work: Callable[[Admin], Awaitable[ResultT]]) -> ResultT:
    """Like `with_cluster`, with an `Admin`."""
    return with_cluster(bootstrap, lambda cluster: work(Admin(cluster)))
