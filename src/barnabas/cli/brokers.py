"""`barnabas brokers`: list brokers, show their API versions, unregister one."""

import importlib
import pkgutil
from typing import Annotated

import typer

from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_admin, with_cluster
from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import print_json, print_table
from barnabas.client.core.cluster import ClusterClient
from barnabas.wire import messages
from barnabas.wire.schema import Versions


@command("list", example="brokers list --fenced", apis=("DescribeCluster",), hides=True)
def list_brokers(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    fenced: Annotated[
        bool, typer.Option("--fenced", help="Include fenced brokers (Kafka 4.0 and later).")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the brokers of the cluster."""
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


@command("api-versions", example="brokers api-versions", apis=("ApiVersions",), hides=True)
def show_api_versions(
    broker: Annotated[
        int | None,
        typer.Argument(
            metavar="[BROKER]",
            help="Id of the broker (default: any broker).",
            show_default=False,
            autocompletion=candidates.brokers,
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Show the APIs that a broker supports, and their versions."""

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


@command("unregister", example="brokers unregister 3", apis=("UnregisterBroker",), needs=("alter cluster",))
def unregister_broker(
    broker: Annotated[
        int,
        typer.Argument(
            metavar="BROKER",
            min=0,
            help="Id of the broker.",
            show_default=False,
            autocompletion=candidates.brokers,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Unregister a broker that has been removed from the cluster for good."""
    with_admin(bootstrap, lambda admin: admin.unregister_broker(broker))
    if as_json:
        print_json({"broker": broker, "done": "unregistered"})
    else:
        print(f"{broker}: unregistered")


app = command_group(list_brokers, show_api_versions, unregister_broker)
