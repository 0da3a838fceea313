"""TLS settings of listeners, and of connections to etcd."""

import re
from collections.abc import Callable
from dataclasses import replace

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.keys.broker import BROKER_KEYS, LISTENER_PREFIX
from barnabas.config.keys.store import STORE_PREFIX
from barnabas.config.listeners import Listener, SecurityProtocol
from barnabas.tls.settings import ClientAuth, TlsError, TlsSettings, tls_settings

_CLIENT_AUTH = "ssl.client.auth"

#: The setting that enables TLS for console and metrics.
METRICS_SSL = "barnabas.metrics.ssl.enable"
#: The prefix of its settings is that of a listener with this name.
WEB_LISTENER = "https"


def listener_tls_settings(config: BrokerConfig, listener: Listener) -> TlsSettings:
    """Return the settings of a listener with TLS; files are not read.

    With SASL_SSL only a client authentication that is set for the listener itself counts (KIP-684).

    :raises ConfigError: When a value is invalid, or two contradict each other.
    """
    own = config.for_listener(listener.name)
    own_key = f"{LISTENER_PREFIX}{listener.name.lower()}.{_CLIENT_AUTH}"
    ignores_common = listener.security_protocol is SecurityProtocol.SASL_SSL and not config.is_set(own_key)

    def text(name: str) -> str:
        return "" if name == _CLIENT_AUTH and ignores_common else own.text_or_none(name) or ""

    return _server_settings(own, text)


def web_tls_settings(config: BrokerConfig, enabled_by: str = METRICS_SSL) -> TlsSettings | None:
    """Return the settings of an HTTP server, such as that for console and metrics; None without TLS.

    :param enabled_by: The setting that enables it.
    :raises ConfigError: When a value is invalid, or two contradict each other.
    """
    if not config.boolean(enabled_by):
        return None
    own = config.for_listener(WEB_LISTENER)
    client_auth_key = f"{LISTENER_PREFIX}{WEB_LISTENER}.{_CLIENT_AUTH}"
    client_auth = own.text_or_none(_CLIENT_AUTH) if config.is_set(client_auth_key) else None
    if client_auth and client_auth != ClientAuth.NONE.value:
        reason = "console, metrics and registry do not ask for certificates of clients: only 'none' is valid"
        raise ConfigError(client_auth_key, client_auth, reason)

    def text(name: str) -> str:
        return "" if name == _CLIENT_AUTH else own.text_or_none(name) or ""

    return _server_settings(own, text)


def _server_settings(own: BrokerConfig, text: Callable[[str], str]) -> TlsSettings:
    try:
        settings = tls_settings(text, own.items)
    except TlsError as error:
        raise config_error(error) from error
    return replace(
        settings,
        allows_dn_changes=own.boolean("ssl.allow.dn.changes"),
        allows_san_changes=own.boolean("ssl.allow.san.changes"),
    )


def store_tls_settings(config: BrokerConfig) -> TlsSettings:
    """Return the settings of connections to etcd; files are not read. Its host name is always verified.

    :raises ConfigError: When a value is invalid, or two contradict each other.
    """

    def text(name: str) -> str:
        if name == "ssl.endpoint.identification.algorithm":
            return "https"
        key = STORE_PREFIX + name
        return config.text_or_none(key) or "" if key in BROKER_KEYS else ""

    try:
        return tls_settings(text, lambda name: config.items(STORE_PREFIX + name))
    except TlsError as error:
        raise config_error(error, STORE_PREFIX) from error


def config_error(error: TlsError, prefix: str = "") -> ConfigError:
    """:param prefix: What the keys begin with."""
    reason = re.sub(r"(?<!\S)ssl\.(?=[a-z])", f"{prefix}ssl.", error.reason)
    return ConfigError(prefix + error.key, error.value, reason)
