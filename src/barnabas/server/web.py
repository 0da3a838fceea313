"""What a broker serves to browsers beside Kafka's protocol: made elsewhere, told here what it needs to know."""

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
    """Where pages are served, for which broker, and its metrics beside them."""

    host: str
    port: int
    bootstrap: str  #: the broker's own listener
    read_only: bool
    hosts: tuple[str, ...]  #: further names by which browsers and scrapers may call it
    trusted_proxies: tuple[str, ...]
    scrape: Callable[[], "Future[bytes]"]  #: may be called from any thread


class WebServer(Protocol):
    """Serves a site, from a thread of its own."""

    @property
    def port(self) -> int:
        """The port that is listened on."""
        ...

    async def start(self) -> None:
        """Listen.

        :raises OSError: When the address is in use or not of this machine.
        """
        ...

    async def close(self) -> None:
        """Stop."""
        ...


WebFactory = Callable[[Site], WebServer]


def site_of(
    config: BrokerConfig, addresses: Sequence[tuple[str, str, int]], registry: MetricsRegistry
) -> Site | None:
    """The site of a broker with these open listeners (name, host, port); None where there is to be none.

    Its pages speak to a listener where people log in, if there is one. To a listener that asks for no login and is
    for this machine alone they would let the whole network in: then there are none, unless they, too, are for this
    machine alone.
    """
    if not config.boolean("barnabas.console.enable"):
        return None
    protocols = {listener.name: listener.security_protocol for listener in config.listeners}
    by_protocol = {protocols.get(name): (host, port) for name, host, port in reversed(addresses)}
    host, port = parse_listener(config.text("barnabas.metrics.listener"))
    asks_login = SecurityProtocol.SASL_PLAINTEXT in by_protocol
    found = by_protocol.get(SecurityProtocol.SASL_PLAINTEXT) or by_protocol.get(SecurityProtocol.PLAINTEXT)
    if found is None or (not asks_login and _is_loopback(found[0]) and not _is_loopback(host)):
        return None
    own = LOOPBACK if found[0] in _EVERYWHERE else found[0]
    return Site(
        host,
        port,
        str(BrokerAddress(own, found[1])),
        config.boolean("barnabas.console.read.only"),
        http_hosts(config),
        config.items("barnabas.console.trusted.proxies"),
        _scraping(registry),
    )


def http_hosts(config: BrokerConfig) -> tuple[str, ...]:
    """Names for pages and metrics: those that were set, and those that clients are told."""
    advertised = [each.advertised.host for each in config.listeners if each.advertised]
    return (*config.items("barnabas.console.hosts"), *advertised)


def _scraping(registry: MetricsRegistry) -> Callable[[], "Future[bytes]"]:
    """Metrics are collected on the loop that runs now, whose numbers they are, and written out in a thread."""
    loop = asyncio.get_running_loop()

    async def scrape() -> bytes:
        return await asyncio.to_thread(exposition, registry.snapshot())

    return lambda: asyncio.run_coroutine_threadsafe(scrape(), loop)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
