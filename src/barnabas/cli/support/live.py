"""Queries of names in the cluster, for completion and hints, with a short time limit."""

import asyncio
import contextvars
import os
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from barnabas.cli.support.config_resources import ConfigResourceKind, parse_resource
from barnabas.cli.support.login import current_login, current_tls
from barnabas.client.admin.admin import Admin
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.retry import Retry
from barnabas.config.config_resource import ResourceKind

#: Environment variable that overrides the limit, in ms, for distant clusters.
TIMEOUT_VARIABLE = "BARNABAS_COMPLETION_TIMEOUT_MS"
TIMEOUT_MS = 500
ResultT = TypeVar("ResultT")

Query = Callable[[Admin], Awaitable[ResultT]]


def timeout_ms() -> int:
    """Return the time limit: the value of the variable if it is a number, else the default."""
    text = os.environ.get(TIMEOUT_VARIABLE, "")
    return int(text) if text.isdecimal() else TIMEOUT_MS


def call_with_timeout(bootstrap: str, query: Query[ResultT]) -> ResultT | None:
    """Return the result of `query`; None if it fails for any reason, or takes longer than the limit.

    The thread is a daemon, because it may still wait for a name server when the process exits.
    """
    results: list[ResultT] = []

    def work() -> None:
        try:
            results.append(_run(bootstrap, query))
        except BaseException:  # the user did not request this query: its failures are not shown
            return

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work,), daemon=True)
    thread.start()
    thread.join(timeout_ms() / 1000)
    return results[0] if results else None


def _run(bootstrap: str, query: Query[ResultT]) -> ResultT:
    limit_ms = timeout_ms()

    async def run() -> ResultT:
        async with ClusterClient(
            bootstrap,
            client_id="barnabas-cli",
            connect_timeout_ms=limit_ms,
            request_timeout_ms=limit_ms,
            retry=Retry(timeout_ms=0),
            login=current_login(),
            tls=current_tls(),
        ) as cluster:
            return await query(Admin(cluster))

    return asyncio.run(run())


async def topics(admin: Admin) -> Iterable[str]:
    return await admin.describe_topics()


async def groups(admin: Admin) -> Iterable[str]:
    from barnabas.client.admin.groups import Groups  # slow, and few commands need it

    return [group.group_id for group in await Groups(admin.cluster).list()]


async def transactional_ids(admin: Admin) -> Iterable[str]:
    from barnabas.client.admin.transactions import Transactions  # slow, and few commands need it

    return [transaction.transactional_id for transaction in await Transactions(admin.cluster).list()]


async def users(admin: Admin) -> Iterable[str]:
    """Return the users that have SCRAM credentials."""
    return await admin.describe_user_scram_credentials()


async def brokers(admin: Admin) -> Iterable[str]:
    return map(str, admin.cluster.metadata.nodes)


async def features(admin: Admin) -> Iterable[str]:
    return [feature.name for feature in await admin.describe_features()]


async def client_metrics(admin: Admin) -> Iterable[str]:
    """Return the names of all client metrics subscriptions."""
    return [resource.name for resource in await admin.list_config_resources([ResourceKind.CLIENT_METRICS])]


async def log_dirs(admin: Admin) -> Iterable[str]:
    nodes = admin.cluster.metadata.nodes
    return [log_dir.path for node in nodes for log_dir in await admin.describe_log_dirs(node)]


async def partitions_count(admin: Admin, topic: str) -> Iterable[str]:
    """Return the number of partitions of a topic, as the only item."""
    return [str(len((await admin.cluster.topic(topic)).partitions))]


async def config_keys(admin: Admin, kind: str, name: str) -> Iterable[str]:
    """Return the config keys of a resource that a broker reports; empty on errors."""
    resource = parse_resource(ConfigResourceKind(kind), name)
    entries = (await admin.describe_configs([resource]))[resource]
    return [entry.name for entry in entries] if isinstance(entries, list) else ()
