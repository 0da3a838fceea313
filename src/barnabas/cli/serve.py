"""`barnabas serve`: run a broker."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.support.commands import command
from barnabas.cli.support.extras import is_console_installed
from barnabas.cli.support.options import key_value_pairs

if TYPE_CHECKING:
    from barnabas.server.web import Site, WebServer


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
    from barnabas.server.main import serve as run  # heavy: neither help nor completion needs the broker

    raise typer.Exit(
        run(
            config_file=config,
            data=data,
            listen=listen,
            overrides=overrides,
            users=add_scram or [],
            web=_console if is_console_installed() else None,
        )
    )


def _console(site: "Site") -> "WebServer":
    """Create the web console; imported only if it is enabled, because the import slows the start."""
    from barnabas.console.embedded import EmbeddedConsole

    return EmbeddedConsole(site)
