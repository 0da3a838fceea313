"""Implementation of `barnabas brokers`."""

import importlib
import pkgutil

from barnabas.cli.output import print_json, print_table
from barnabas.cli.work.calls import with_admin, with_cluster
from barnabas.client.admin.admin import Admin
from barnabas.client.core.cluster import ClusterClient
from barnabas.wire import messages
from barnabas.wire.schema import Versions


def show_list(bootstrap: str, *, fenced: bool, as_json: bool) -> None:
    """Print the brokers."""
    cluster = with_admin(bootstrap, lambda admin: admin.describe_cluster(fenced=fenced))
    brokers = [
        {
            "broker": node.node_id,
            "host": node.address.host,
            "port": node.address.port,
            "rack": node.rack,
            "controller": node.node_id == cluster.controller_id,
            "fenced": node.node_id in cluster.fenced,
        }
        for node in sorted(cluster.nodes)
    ]
    if as_json:
        print_json(brokers)
        return
    rows = [
        (
            broker["broker"],
            f"{broker['host']}:{broker['port']}",
            broker["rack"] or "",
            " ".join(role for role in ("controller", "fenced") if broker[role]),
        )
        for broker in brokers
    ]
    print_table(("broker", "address", "rack", "role"), rows)


def show_api_versions(bootstrap: str, broker: int | None, *, as_json: bool) -> None:
    """Print the APIs that a broker supports.

    :raises KafkaError: BROKER_NOT_AVAILABLE for an unknown id.
    """

    async def fetch_versions(cluster: ClusterClient) -> dict[int, Versions]:
        return dict((await cluster.connection(broker)).versions)

    versions_by_key = with_cluster(bootstrap, fetch_versions)
    names = _api_names()
    rows = [(key, names.get(key), *versions) for key, versions in sorted(versions_by_key.items())]
    columns = ("key", "api", "first", "last")
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_table(columns, [(key, name or "unknown", *versions) for key, name, *versions in rows])


def _api_names() -> dict[int, str]:
    """Return API key -> Kafka's name of the API, for all known messages."""
    names: dict[int, str] = {}
    for module in pkgutil.iter_modules(messages.__path__, f"{messages.__name__}."):
        for name, item in vars(importlib.import_module(module.name)).items():
            if name.endswith("Request") and hasattr(item, "API_KEY"):
                names[item.API_KEY] = name.removesuffix("Request")
    return names


def unregister(bootstrap: str, broker: int, *, as_json: bool) -> None:
    """Unregister a broker, and print that.

    :raises KafkaError: BROKER_ID_NOT_REGISTERED, INVALID_REQUEST for a broker that is running.
    """

    async def work(admin: Admin) -> None:
        await admin.unregister_broker(broker)

    with_admin(bootstrap, work)
    if as_json:
        print_json({"broker": broker, "done": "unregistered"})
    else:
        print(f"{broker}: unregistered")
