"""`barnabas serve`: run a broker."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.failures import handle_errors
from barnabas.cli.options import key_value_pairs

if TYPE_CHECKING:
    from barnabas.server.web import Site, WebServer


@handle_errors
def serve(
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="A server.properties of Kafka's.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Where to keep data; created when missing.")
    ] = None,
    listen: Annotated[
        str | None, typer.Option("--listen", metavar="HOST:PORT", help="Where to listen for clients.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A broker setting, stronger than the file's."),
    ] = None,
    add_scram: Annotated[
        list[str] | None,
        typer.Option(
            "--add-scram",
            metavar="USER=PASSWORD",
            help="Let a user log in by SCRAM, if there is none of the name; =@FILE reads the password there. "
            "Also from the variable BARNABAS_ADD_SCRAM.",
        ),
    ] = None,
) -> None:
    """Run a Kafka broker until it is stopped."""
    overrides = dict(key_value_pairs(settings, "--set"))
    from barnabas.server.main import serve as run

    raise typer.Exit(
        run(
            config_file=config,
            data=data,
            listen=listen,
            overrides=overrides,
            users=add_scram or [],
            web=_console,
        )
    )


def _console(site: "Site") -> "WebServer":
    """The console, imported where it is served alone: a broker without it starts as quickly as ever."""
    from barnabas.console.embedded import EmbeddedConsole

    return EmbeddedConsole(site)
