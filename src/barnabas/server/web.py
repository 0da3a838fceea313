"""The address and the settings of the HTTP server for console and metrics, which the caller of the broker creates."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from ipaddress import ip_address
from typing import NamedTuple, Protocol

from barnabas.client.core.address import BrokerAddress
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.listeners import SecurityProtocol
from barnabas.telemetry.http import LOOPBACK, parse_listener
from barnabas.telemetry.metrics import MetricsRegistry, exposition

_EVERYWHERE = ("", "0.0.0.0", "::")


class Site(NamedTuple):
    """The address of the pages, their broker, and its metrics."""

    host: str
    port: int
    bootstrap: str  #: the broker's listener that the pages use
    read_only: bool
    hosts: tuple[str, ...]  #: further host names that browsers and scrapers may use
    trusted_proxies: tuple[str, ...]
    scrape: Callable[[], "Future[bytes]"]  #: may be called from any thread


class WebServer(Protocol):
    """Serves a site in its own thread."""

    @property
    def port(self) -> int:
        """The bound port."""
        ...

    async def start(self) -> None:
        """Bind the address and serve.

        :raises OSError: If the address is in use, or does not belong to this machine.
        """
        ...

    async def close(self) -> None: ...


WebFactory = Callable[[Site], WebServer]


def site_of(
    config: BrokerConfig, addresses: Sequence[tuple[str, str, int]], registry: MetricsRegistry
) -> Site | None:
    """Return the site of a broker with the open listeners `addresses` (name, host, port); None if it has no pages.

    The pages use a listener with SASL if there is one. Without SASL, the pages of a loopback listener must be on a
    loopback address too: else they would give the whole network access to it.
    """
    if not config.boolean("barnabas.console.enable"):
        return None
    protocols = {listener.name: listener.security_protocol for listener in config.listeners}
    by_protocol = {protocols.get(name): (host, port) for name, host, port in reversed(addresses)}
    host, port = parse_listener(config.text("barnabas.metrics.listener"))
    requires_login = SecurityProtocol.SASL_PLAINTEXT in by_protocol
    address = by_protocol.get(SecurityProtocol.SASL_PLAINTEXT) or by_protocol.get(SecurityProtocol.PLAINTEXT)
    if address is None or (not requires_login and _is_loopback(address[0]) and not _is_loopback(host)):
        return None
    own = LOOPBACK if address[0] in _EVERYWHERE else address[0]
    return Site(
        host,
        port,
        str(BrokerAddress(own, address[1])),
        config.boolean("barnabas.console.read.only"),
        http_hosts(config),
        config.items("barnabas.console.trusted.proxies"),
        _scraper(registry),
    )


def http_hosts(config: BrokerConfig) -> tuple[str, ...]:
    """Return the host names of pages and metrics: the configured ones, and those of advertised listeners."""
    advertised = [listener.advertised.host for listener in config.listeners if listener.advertised]
    return (*config.items("barnabas.console.hosts"), *advertised)


def _scraper(registry: MetricsRegistry) -> Callable[[], "Future[bytes]"]:
    """Return a function that collects metrics on the running loop, which owns them, and encodes them in a thread."""
    loop = asyncio.get_running_loop()

    async def scrape() -> bytes:
        return await asyncio.to_thread(exposition, registry.snapshot())

    return lambda: asyncio.run_coroutine_threadsafe(scrape(), loop)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
