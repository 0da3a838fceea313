"""Implementation of `barnabas console`."""

import signal
from collections.abc import Sequence
from ipaddress import ip_address
from types import FrameType

from barnabas.base.hosts import is_network
from barnabas.cli.failures import wrong_use
from barnabas.cli.login import current_login
from barnabas.client.core.address import parse_bootstrap
from barnabas.console.serving import ConsoleServer
from barnabas.console.settings import ConsoleSettings
from barnabas.console.sockets import listening
from barnabas.telemetry.http import parse_listener


def serve(
    bootstrap: str, listen: str, *, read_only: bool, hosts: Sequence[str], trusted_proxies: Sequence[str]
) -> None:
    """Serve until SIGINT or SIGTERM.

    :raises ValueError: If an address is not valid.
    :raises OSError: If the console cannot listen on the address.
    :raises CommandError: If everyone on the network could act as the login of --command-config.
    """
    parse_bootstrap(bootstrap)
    address, port = parse_listener(listen)
    for proxy in trusted_proxies:
        if not is_network(proxy):
            message = f"--trusted-proxy '{proxy}': must be an address or a network"
            raise wrong_use(message, "--trusted-proxy 10.1.2.3 or --trusted-proxy 10.1.0.0/16")
    login = current_login()
    if login is not None and not read_only and not _is_loopback(address):
        message = f"everyone who can reach {listen} would act as '{login.user}'"
        hint = "omit --command-config, so that users log in; or add --read-only, or listen on 127.0.0.1"
        raise wrong_use(message, hint)
    settings = ConsoleSettings(
        bootstrap,
        read_only=read_only,
        login=login,
        hosts=tuple(hosts),
        trusted_proxies=tuple(trusted_proxies),
    )
    server = ConsoleServer(settings, listening(address, port))
    print(f"The console of {bootstrap}: {server.url}  (press Ctrl-C to stop)", flush=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    server.run()


def _end(number: int, frame: FrameType | None) -> None:
    """Exit with 0: a signal ends the console regularly; uvicorn raises it again after its shutdown.

    :raises SystemExit: Always, with 0.
    """
    raise SystemExit(0)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
