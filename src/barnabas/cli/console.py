"""`barnabas console`: the web console, for any Kafka cluster."""

import signal
from collections.abc import Sequence
from typing import Annotated

import typer

from barnabas.base.hosts import is_loopback, is_network
from barnabas.cli.support.commands import command
from barnabas.cli.support.extras import check_console_installed, check_registry_installed
from barnabas.cli.support.failures import wrong_use
from barnabas.cli.support.login import current_login, current_tls
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap
from barnabas.cli.support.registry import Registry
from barnabas.cli.support.serving import Keystore, exit_by_signal, https_context
from barnabas.client.core.address import parse_bootstrap
from barnabas.telemetry.http import parse_listener

LISTEN_DEFAULT = "127.0.0.1:9680"


@command("console", example="console --bootstrap 127.0.0.1:9092 --read-only")
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
    registry: Registry = None,
    keystore: Keystore = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--trusted-proxy",
            metavar="ADDRESS",
            help="Address or network of a proxy whose X-Forwarded-For and X-Forwarded-Proto headers are trusted.",
        ),
    ] = None,
) -> None:
    check_console_installed()
    if registry is not None:
        check_registry_installed()
    parse_bootstrap(bootstrap)
    address, port = parse_listener(listen)
    _check_proxies(trusted_proxy or ())
    login = current_login()
    if login is not None and not read_only:
        _check_address(address, login.user)
    # heavy: neither help nor completion needs the web server
    from barnabas.console.serving import ConsoleServer
    from barnabas.console.settings import ConsoleSettings
    from barnabas.telemetry.https import listening

    settings = ConsoleSettings(
        bootstrap,
        read_only=read_only,
        login=login,
        tls=current_tls(),
        hosts=tuple(host or ()),
        trusted_proxies=tuple(trusted_proxy or ()),
        registry=registry or "",
    )
    https = None if keystore is None else https_context(keystore)
    server = ConsoleServer(settings, listening(address, port), https=https)
    print(f"The console of {bootstrap}: {server.url}  (press Ctrl-C to stop)", flush=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, exit_by_signal)
    server.run()


def _check_address(address: str, user: str) -> None:
    if not is_loopback(address):
        message = f"everyone who can reach {address} would act as '{user}'"
        hint = "omit --command-config, so that users log in; or add --read-only, or listen on 127.0.0.1"
        raise wrong_use(message, hint)


def _check_proxies(proxies: Sequence[str]) -> None:
    for proxy in proxies:
        if not is_network(proxy):
            message = f"--trusted-proxy '{proxy}': must be an address or a network"
            raise wrong_use(message, "--trusted-proxy 10.1.2.3 or --trusted-proxy 10.1.0.0/16")
