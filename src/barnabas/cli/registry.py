"""`barnabas registry`: the schema registry, for any Kafka cluster."""

import signal
from pathlib import Path
from typing import Annotated

import typer

from barnabas.base.hosts import is_loopback
from barnabas.cli.support.commands import command
from barnabas.cli.support.extras import check_registry_installed
from barnabas.cli.support.failures import warn
from barnabas.cli.support.login import current_login, current_tls
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap
from barnabas.cli.support.serving import Keystore, exit_by_signal, https_context
from barnabas.client.core.address import parse_bootstrap
from barnabas.registry.options import TOPIC_DEFAULT, RegistrySettings
from barnabas.telemetry.http import parse_listener

LISTEN_DEFAULT = "127.0.0.1:8081"


@command("registry", example="registry --bootstrap 127.0.0.1:9092 --listen 127.0.0.1:8081")
def registry(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    listen: Annotated[
        str,
        typer.Option(
            "--listen", "-l", metavar="HOST:PORT", help="Address to listen on; port 0 picks a free port."
        ),
    ] = LISTEN_DEFAULT,
    topic: Annotated[
        str, typer.Option("--topic", metavar="TOPIC", help="Topic of the schemas; created if missing.")
    ] = TOPIC_DEFAULT,
    keystore: Keystore = None,
    users_file: Annotated[
        Path | None,
        typer.Option(
            "--users-file",
            metavar="FILE",
            help="Require HTTP basic authentication of these users, one NAME=PASSWORD in each line.",
        ),
    ] = None,
) -> None:
    check_registry_installed()
    parse_bootstrap(bootstrap)
    address, port = parse_listener(listen)
    # heavy: neither help nor completion needs the web server
    from barnabas.registry.serving import RegistryServer
    from barnabas.telemetry.https import listening
    from barnabas.tls.contexts import client_context

    settings = RegistrySettings.on(
        address,
        bootstrap,
        topic=topic,
        login=current_login(),
        tls=current_tls(),
        users_file="" if users_file is None else str(users_file),
    )
    if settings.tls is not None:
        client_context(settings.tls)  # fails here, and not after the registry is served
    https = None if keystore is None else https_context(keystore)
    server = RegistryServer(settings, listening(address, port), https=https)
    if users_file is None and not is_loopback(address):
        warn(f"everyone who can reach {address} may change schemas: --users-file restricts it", as_json=False)
    print(f"The schema registry of {bootstrap}: {server.url}  (press Ctrl-C to stop)", flush=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, exit_by_signal)
    server.run()
