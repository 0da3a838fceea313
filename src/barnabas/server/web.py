"""The address and the settings of the HTTP server for console and metrics, which the caller of the broker creates."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple, Protocol

from barnabas.base.hosts import EVERY_INTERFACE, is_loopback
from barnabas.client.core.address import BrokerAddress
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.listeners import Listener, SecurityProtocol
from barnabas.config.tls import METRICS_SSL, listener_tls_settings, web_tls_settings
from barnabas.telemetry.http import LOOPBACK, parse_listener
from barnabas.telemetry.metrics import MetricsRegistry, exposition
from barnabas.tls.contexts import server_context
from barnabas.tls.reloading import ReloadingContext
from barnabas.tls.settings import ClientAuth, TlsSettings, TrustStore
from barnabas.tls.stores import own_certificate

#: The security protocols of listeners for the pages, the best one first.
_PREFERRED = (
    SecurityProtocol.SASL_SSL,
    SecurityProtocol.SASL_PLAINTEXT,
    SecurityProtocol.PLAINTEXT,
    SecurityProtocol.SSL,
)


class Site(NamedTuple):
    """The address of the pages, their broker, and its metrics."""

    host: str
    port: int
    bootstrap: str  #: the broker's listener that the pages use
    tls: TlsSettings | None  #: of connections to it
    read_only: bool
    hosts: tuple[str, ...]  #: further host names that browsers and scrapers may use
    trusted_proxies: tuple[str, ...]
    scrape: Callable[[], "Future[bytes]"]  #: may be called from any thread
    https: ssl.SSLContext | None  #: for HTTPS
    registry: str = ""  #: URL of the schema registry that decodes records


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
    config: BrokerConfig,
    addresses: Sequence[tuple[str, str, int]],
    registry: MetricsRegistry,
    https: ssl.SSLContext | None = None,
    own_registry: str = "",
) -> Site | None:
    """Return the site of a broker with the open listeners `addresses` (name, host, port); None if it has no pages.

    :param own_registry: URL of the broker's own schema registry.

    The pages use a listener with SASL if there is one. Without SASL, the pages of a loopback listener must be on a
    loopback address too: else they would give the whole network access to it.
    """
    if not config.boolean("barnabas.console.enable"):
        return None
    listeners = {listener.security_protocol: listener for listener in reversed(config.listeners)}
    bound = {name: (host, port) for name, host, port in addresses}
    usable = [listeners[protocol] for protocol in _PREFERRED if protocol in listeners]
    listener = next((each for each in usable if each.name in bound and _admits_pages(config, each)), None)
    host, port = parse_listener(config.text("barnabas.metrics.listener"))
    if listener is None:
        return None
    address = bound[listener.name]
    if not listener.security_protocol.has_sasl and is_loopback(address[0]) and not is_loopback(host):
        return None
    own = LOOPBACK if address[0] in EVERY_INTERFACE else address[0]
    tls = own_tls(config, listener)
    if tls is not None and tls.verifies_host_name and listener.advertised is not None:
        own = listener.advertised.host or own
    return Site(
        host,
        port,
        str(BrokerAddress(own, address[1])),
        tls,
        config.boolean("barnabas.console.read.only"),
        http_hosts(config),
        config.items("barnabas.console.trusted.proxies"),
        _scraper(registry),
        https,
        config.text_or_none("barnabas.console.registry.url") or own_registry,
    )


def https_context(
    config: BrokerConfig, now_ms: Callable[[], int], enabled_by: str = METRICS_SSL
) -> ssl.SSLContext | None:
    """Return the context of an HTTP server; None without TLS.

    :param enabled_by: The setting that enables it.
    :raises TlsError: When a setting cannot be used.
    :raises ConfigError: When a value is invalid.
    """
    settings = web_tls_settings(config, enabled_by)
    return None if settings is None else ReloadingContext(settings, server_context, now_ms).following()


def _admits_pages(config: BrokerConfig, listener: Listener) -> bool:
    """Whether the pages can connect to a listener: they have no client certificate."""
    if not listener.security_protocol.has_tls:
        return True
    return listener_tls_settings(config, listener).client_auth is not ClientAuth.REQUIRED


def own_tls(config: BrokerConfig, listener: Listener, *, has_keys: bool = False) -> TlsSettings | None:
    """Return how a client in this process connects: it trusts what the listener trusts, or else only this broker's own
    certificate.

    :param has_keys: Whether it shows the listener's own certificate, as brokers do.
    """
    if not listener.security_protocol.has_tls:
        return None
    settings = listener_tls_settings(config, listener)
    keys = settings.keys if has_keys else None
    if settings.trust is not None:
        return TlsSettings(keys, settings.trust, verifies_host_name=settings.verifies_host_name)
    assert settings.keys is not None
    own = TrustStore("PEM", certificates=own_certificate(settings.keys))
    return TlsSettings(keys, own, verifies_host_name=False)


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
