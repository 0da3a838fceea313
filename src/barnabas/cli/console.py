"""`barnabas console`: the web console, for any Kafka cluster."""

from typing import Annotated

import typer

from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap

LISTEN_DEFAULT = "127.0.0.1:9680"


@handle_errors
def console(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    listen: Annotated[
        str,
        typer.Option(
            "--listen", "-l", metavar="HOST:PORT", help="Address to listen on; port 0 picks a free port."
        ),
    ] = LISTEN_DEFAULT,
    read_only: Annotated[bool, typer.Option("--read-only", help="Do not allow any changes.")] = False,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="NAME",
            help="Additional host name that browsers may use for the console; may be repeated.",
        ),
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--trusted-proxy",
            metavar="ADDRESS",
            help="Address or network of a proxy whose X-Forwarded-For and X-Forwarded-Proto headers are trusted.",
        ),
    ] = None,
) -> None:
    """Serve the web console. Users log in to the cluster; with --command-config everyone acts as that user."""
    from barnabas.cli.work import console as work

    work.serve(bootstrap, listen, read_only=read_only, hosts=host or (), trusted_proxies=trusted_proxy or ())
