"""`barnabas serve`: run a broker."""

import gc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.base.collector import paused_collector
from barnabas.cli.support.commands import command
from barnabas.cli.support.extras import is_console_installed
from barnabas.cli.support.options import key_value_pairs

if TYPE_CHECKING:
    from barnabas.server.web import Site, WebServer

_Brokers = Annotated[
    int,
    typer.Option(
        "--brokers",
        metavar="N",
        min=1,
        help="Number of brokers, each a process; their ports and node ids count up from the first.",
    ),
]
_Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Metadata store that brokers share: etcd://HOST:PORT,... (etcds:// with TLS) or sqlite:FILE.",
    ),
]
_NodeId = Annotated[
    int | None, typer.Option("--node-id", metavar="ID", help="Id of this broker in its cluster.")
]
_Rack = Annotated[str | None, typer.Option("--rack", metavar="RACK", help="Rack of this broker.")]


@command("serve", example="serve --data ./data --listen 127.0.0.1:9092")
def serve(
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="Configuration file, in the format of Kafka's server.properties."
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Data directory; created if missing.")
    ] = None,
    listen: Annotated[
        str | None, typer.Option("--listen", metavar="HOST:PORT", help="Address to listen on for clients.")
    ] = None,
    brokers: _Brokers = 1,
    store: _Store = None,
    node_id: _NodeId = None,
    rack: _Rack = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Broker setting, overrides the file; may be repeated."
        ),
    ] = None,
    add_scram: Annotated[
        list[str] | None,
        typer.Option(
            "--add-scram",
            metavar="USER=PASSWORD",
            help="Create a SCRAM user, if it does not exist; USER=@FILE reads the password from a file. "
            "The variable BARNABAS_ADD_SCRAM is used as well.",
        ),
    ] = None,
) -> None:
    overrides = dict(key_value_pairs(settings, "--set"))
    for option, key, value in (
        ("--store", "barnabas.store", store),
        ("--node-id", "node.id", node_id),
        ("--rack", "broker.rack", rack),
    ):
        if value is not None:
            _override(overrides, option, key, str(value))
    with paused_collector():  # collections would take an eighth of the time
        from barnabas.server.main import serve as run  # heavy: neither help nor completion needs the broker

        gc.freeze()  # else everything would be visited when the collector goes on

    raise typer.Exit(
        run(
            config_file=config,
            data=data,
            listen=listen,
            overrides=overrides,
            users=add_scram or [],
            web=_console if is_console_installed() else None,
            brokers_count=brokers,
        )
    )


def _override(overrides: dict[str, str], option: str, key: str, value: str) -> None:
    if key in overrides:
        message = f"conflicts with --set {key}={overrides[key]}: use only one of them"
        raise typer.BadParameter(message, param_hint=option)
    overrides[key] = value


def _console(site: "Site") -> "WebServer":
    """Create the web console; imported only if it is enabled, because the import slows the start."""
    from barnabas.console.embedded import EmbeddedConsole

    return EmbeddedConsole(site)
