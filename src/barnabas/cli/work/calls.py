"""From a command to the client and back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from barnabas.cli.login import current_login
from barnabas.client.admin.admin import Admin
from barnabas.client.core.cluster import ClusterClient

ResultT = TypeVar("ResultT")


def with_cluster(bootstrap: str, work: Callable[[ClusterClient], Awaitable[ResultT]]) -> ResultT:
    """Connect, do `work`, close.

    :raises BrokerConnectionError: When no broker answers.
    :raises KafkaError: What a broker answered.
    """

    async def run() -> ResultT:
        async with ClusterClient(bootstrap, client_id="barnabas-cli", login=current_login()) as cluster:
            return await work(cluster)

    return asyncio.run(run())


def with_admin(bootstrap: str, work: Callable[[Admin], Awaitable[ResultT]]) -> ResultT:
    """The same with an `Admin`."""
    return with_cluster(bootstrap, lambda cluster: work(Admin(cluster)))
