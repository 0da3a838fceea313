"""`barnabas console`: the web console, for any Kafka cluster."""

import asyncio
import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.base.hosts import is_loopback, is_network
from barnabas.cli.support.commands import command
from barnabas.cli.support.extras import check_console_installed, check_registry_installed
from barnabas.cli.support.failures import CommandError, wrong_use
from barnabas.cli.support.login import current_login, current_tls
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap
from barnabas.cli.support.registry import Registry
from barnabas.cli.support.serving import Keystore, exit_by_signal, https_context
from barnabas.client.core.address import parse_bootstrap
from barnabas.telemetry.http import parse_listener

if TYPE_CHECKING:
    from barnabas.client.auth.sasl import SaslLogin
    from barnabas.console.settings import ConsoleSettings
    from barnabas.tls.settings import TlsSettings

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
    login, tls = current_login(), current_tls()
    is_open_to_others = not read_only and not is_loopback(address)
    if is_open_to_others:
        _check_credentials(address, login, tls)
    # heavy: neither help nor completion needs the web server
    from barnabas.console.serving import ConsoleServer
    from barnabas.console.settings import ConsoleSettings
    from barnabas.telemetry.https import listening

    settings = ConsoleSettings(
        bootstrap,
        read_only=read_only,
        login=login,
        tls=tls,
        hosts=tuple(host or ()),
        trusted_proxies=tuple(trusted_proxy or ()),
        registry=registry or "",
    )
    if is_open_to_others:
        _check_cluster(address, settings)
    https = None if keystore is None else https_context(keystore)
    server = ConsoleServer(settings, listening(address, port), https=https)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, exit_by_signal)
    print(f"The console of {bootstrap}: {server.url}  (press Ctrl-C to stop)", flush=True)
    server.run()


def _check_credentials(address: str, login: "SaslLogin | None", tls: "TlsSettings | None") -> None:
    """Refuse to let other machines use the login or the client certificate of this command."""
    if login is not None:
        raise _too_open(address, f"act as '{login.user}'", "omit --command-config, so that users log in")
    if tls is not None and tls.keys is not None:
        who = "act as the user of the client certificate"
        raise _too_open(address, who, "omit the certificate, so that users log in")


def _check_cluster(address: str, settings: "ConsoleSettings") -> None:
    """Refuse to open a cluster that only this machine can reach, and that requires no login, to other machines.

    :raises BrokerConnectionError: When no broker responds.
    """
    from barnabas.console.access import offered_mechanisms

    brokers = parse_bootstrap(settings.bootstrap)
    if all(is_loopback(broker.host) for broker in brokers) and not asyncio.run(offered_mechanisms(settings)):
        what = f"change the cluster at {settings.bootstrap}, which requires no login"
        raise _too_open(address, what, "let the broker require a login")


def _too_open(address: str, what: str, remedy: str) -> CommandError:
    message = f"everyone who can reach {address} would {what}"
    return wrong_use(message, f"{remedy}; or add --read-only, or listen on 127.0.0.1")


def _check_proxies(proxies: Sequence[str]) -> None:
    for proxy in proxies:
        if not is_network(proxy):
            message = f"--trusted-proxy '{proxy}': must be an address or a network"
            raise wrong_use(message, "--trusted-proxy 10.1.2.3 or --trusted-proxy 10.1.0.0/16")
