"""Opens a metadata store in etcd, as the configuration describes it."""

import ssl
from collections.abc import Callable

from barnabas.base.clock import Clock
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.keys.store import STORE_PREFIX
from barnabas.config.tls import config_error, store_tls_settings
from barnabas.server.shutdown import Shutdown
from barnabas.stores.etcd import EtcdStore
from barnabas.stores.etcd_gateway import Credentials, Gateway
from barnabas.stores.etcd_url import parse_etcd_url
from barnabas.tls.contexts import client_context
from barnabas.tls.reloading import ReloadingContext
from barnabas.tls.settings import TlsError


def open_etcd(config: BrokerConfig, url: str, clock: Clock, shutdown: Shutdown) -> EtcdStore:
    """Return the store, and add its closing to `shutdown`; nothing is sent yet.

    :raises ConfigError: If the URL, or a setting of TLS, is not valid.
    """
    try:
        address = parse_etcd_url(url)
    except ValueError as error:
        raise ConfigError("barnabas.store", url, str(error)) from error
    if not address.is_tls:
        _check_scheme(config, url)
    user = config.text("barnabas.store.user")
    gateway = Gateway(
        address.endpoints,
        _tls(config, clock) if address.is_tls else None,
        Credentials(user, config.text("barnabas.store.password")) if user else None,
    )
    store = EtcdStore(gateway, address.prefix, config.integer("broker.session.timeout.ms"))
    shutdown.add_async(store.close)
    return store


def _tls(config: BrokerConfig, clock: Clock) -> Callable[[], ssl.SSLContext]:
    try:
        return ReloadingContext(store_tls_settings(config), client_context, clock.monotonic_ms).current
    except TlsError as error:
        raise config_error(error, STORE_PREFIX) from error


def _check_scheme(config: BrokerConfig, url: str) -> None:
    """Refuse settings of TLS beside a URL without it: the password would be sent as plain text."""
    ignored = next((name for name in config.originals if name.startswith(f"{STORE_PREFIX}ssl.")), None)
    if ignored is not None:
        raise ConfigError("barnabas.store", url, f"must begin with etcds:// because {ignored} is set")
