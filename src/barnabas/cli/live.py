"""What there is in a cluster at this moment, for completion and for advice: quick or not at all."""

import contextvars
import os
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

#: Names another limit, in ms: for clusters that are far away.
TIMEOUT_VARIABLE = "BARNABAS_COMPLETION_TIMEOUT_MS"
TIMEOUT_MS = 500
ResultT = TypeVar("ResultT")

Ask = Callable[["Admin"], Awaitable[ResultT]]


def timeout_ms() -> int:
    """How long a cluster is waited for; what the variable says if that is a number."""
    given = os.environ.get(TIMEOUT_VARIABLE, "")
    return int(given) if given.isdecimal() else TIMEOUT_MS


def call_with_timeout(bootstrap: str, ask: Ask[ResultT]) -> ResultT | None:
    """What `ask` gives; None when that fails, for whatever reason, or takes longer than the limit.

    The thread is a daemon: it may still wait for a name server when the process is to end.
    """
    found: list[ResultT] = []

    def work() -> None:
        try:
            found.append(_answer(bootstrap, ask))
        except BaseException:  # nobody asked for this: no failure of it may be seen
            return

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work,), daemon=True)
    thread.start()
    thread.join(timeout_ms() / 1000)
    return found[0] if found else None


def _answer(bootstrap: str, ask: Ask[ResultT]) -> ResultT:
    import asyncio

    from barnabas.cli.login import current_login
    from barnabas.client.admin.admin import Admin
    from barnabas.client.core.cluster import ClusterClient
    from barnabas.client.core.retry import Retry

    limit_ms = timeout_ms()

    async def run() -> ResultT:
        async with ClusterClient(
            bootstrap,
            client_id="barnabas-cli",
            connect_timeout_ms=limit_ms,
            request_timeout_ms=limit_ms,
            retry=Retry(timeout_ms=0),
            login=current_login(),
        ) as cluster:
            return await ask(Admin(cluster))

    return asyncio.run(run())


async def topics(admin: "Admin") -> Iterable[str]:
    """The names of all topics."""
    return await admin.describe_topics()


async def groups(admin: "Admin") -> Iterable[str]:
    """The ids of all groups."""
    from barnabas.client.admin.groups import Groups

    return [each.group_id for each in await Groups(admin.cluster).list()]


async def transactional_ids(admin: "Admin") -> Iterable[str]:
    """All transactional ids."""
    from barnabas.client.admin.transactions import Transactions

    return [each.transactional_id for each in await Transactions(admin.cluster).list()]


async def users(admin: "Admin") -> Iterable[str]:
    """Who can log in by SCRAM."""
    return await admin.describe_user_scram_credentials()


async def brokers(admin: "Admin") -> Iterable[str]:
    """The ids of all brokers."""
    return map(str, admin.cluster.metadata.nodes)


async def features(admin: "Admin") -> Iterable[str]:
    """The names of all features."""
    return [each.name for each in await admin.describe_features()]


async def client_metrics(admin: "Admin") -> Iterable[str]:
    """The names of all subscriptions to clients' metrics."""
    from barnabas.config.config_resource import ResourceKind

    return [each.name for each in await admin.list_config_resources([ResourceKind.CLIENT_METRICS])]


async def log_dirs(admin: "Admin") -> Iterable[str]:
    """The paths of all log directories."""
    nodes = admin.cluster.metadata.nodes
    return [each.path for node in nodes for each in await admin.describe_log_dirs(node)]


async def partitions_count(admin: "Admin", topic: str) -> Iterable[str]:
    """How many partitions a topic has."""
    return [str(len((await admin.cluster.topic(topic)).partitions))]


async def config_keys(admin: "Admin", kind: str, name: str) -> Iterable[str]:
    """The keys of a resource's configs, as a broker tells them."""
    from barnabas.cli.work.configs import resource

    asked = resource(kind, name)
    outcome = (await admin.describe_configs([asked]))[asked]
    return [entry.name for entry in outcome] if isinstance(outcome, list) else ()
