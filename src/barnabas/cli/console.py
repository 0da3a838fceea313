"""`barnabas console`: pages in a browser, for any Kafka."""

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
    read_only: Annotated[bool, typer.Option("--read-only", help="Let nobody change anything.")] = False,
    host: Annotated[
        list[str] | None,
        typer.Option("--host", metavar="NAME", help="A further name by which browsers may call it."),
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--trusted-proxy",
            metavar="ADDRESS",
            help="An address or network of a proxy whose X-Forwarded-For and X-Forwarded-Proto are believed.",
        ),
    ] = None,
) -> None:
    """Serve the web console. People log in as users of the cluster; with --command-config all act as that user."""
    from barnabas.cli.work import console as work

    work.serve(bootstrap, listen, read_only=read_only, hosts=host or (), trusted_proxies=trusted_proxy or ())
