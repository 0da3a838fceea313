"""Opens a metadata store in etcd, as the configuration describes it."""

import ssl

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.server.shutdown import Shutdown
from barnabas.stores.etcd import EtcdStore
from barnabas.stores.etcd_gateway import Credentials, Gateway
from barnabas.stores.etcd_url import parse_etcd_url

_CA_KEY, _CERTIFICATE_KEY = "barnabas.store.ssl.ca", "barnabas.store.ssl.certificate"


def open_etcd(config: BrokerConfig, url: str, shutdown: Shutdown) -> EtcdStore:
    """Return the store, and add its closing to `shutdown`; nothing is sent yet.

    :raises ConfigError: If the URL or a file of certificates is not valid.
    """
    try:
        address = parse_etcd_url(url)
    except ValueError as error:
        raise ConfigError("barnabas.store", url, str(error)) from error
    user = config.text("barnabas.store.user")
    gateway = Gateway(
        address.endpoints,
        _tls(config) if address.is_tls else None,
        Credentials(user, config.text("barnabas.store.password")) if user else None,
    )
    store = EtcdStore(gateway, address.prefix, config.integer("broker.session.timeout.ms"))
    shutdown.add_async(store.close)
    return store


def _tls(config: BrokerConfig) -> ssl.SSLContext:
    authorities = config.text(_CA_KEY)
    try:
        context = ssl.create_default_context(cafile=authorities or None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(_CA_KEY, authorities, f"must be a file of certificates in PEM: {error}") from error
    certificate = config.text(_CERTIFICATE_KEY)
    if certificate:
        try:
            context.load_cert_chain(certificate, config.text("barnabas.store.ssl.key") or None)
        except (OSError, ssl.SSLError) as error:
            message = f"must be a file in PEM, with its key in barnabas.store.ssl.key: {error}"
            raise ConfigError(_CERTIFICATE_KEY, certificate, message) from error
    return context
