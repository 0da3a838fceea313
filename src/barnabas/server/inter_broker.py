"""How this broker connects to the others of its cluster: login and TLS of the listener between brokers."""

import ssl
from collections.abc import Callable

from barnabas.client.auth.sasl import OAUTHBEARER, PASSWORD_MECHANISMS, SaslLogin
from barnabas.client.core.properties import token_login
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.jaas import parse_jaas
from barnabas.config.keys.broker import LISTENER_PREFIX
from barnabas.config.tls import config_error, listener_tls_settings
from barnabas.metadata.dynamic_config import DynamicConfig
from barnabas.telemetry.logs import get_logger
from barnabas.tls.contexts import client_context
from barnabas.tls.reloading import ReloadingContext
from barnabas.tls.settings import TlsError, TlsSettings

_log = get_logger("barnabas.server")

_MECHANISM = "sasl.mechanism.inter.broker.protocol"
_TOKEN_KEYS = (
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.scope",
)


class InterBrokerSecurity:
    """Login and TLS for new connections to other brokers; follows changes of the configuration and of files."""

    def __init__(self, dynamic_config: DynamicConfig, now_ms: Callable[[], int]) -> None:
        """:raises ConfigError: If the login or the certificates cannot be used."""
        self._dynamic_config = dynamic_config
        self._now_ms = now_ms
        self._config = dynamic_config.current
        self._login = inter_broker_login(self._config)
        self._tls_settings = _tls_settings_of(self._config)
        self._tls = self._reloading(self._tls_settings)

    def login(self) -> SaslLogin | None:
        """Return the login; None if the others require none."""
        self._follow()
        return self._login

    def tls(self) -> ssl.SSLContext | None:
        """Return the TLS context; None for connections without TLS."""
        self._follow()
        return None if self._tls is None else self._tls.current()

    def _follow(self) -> None:
        config = self._dynamic_config.current
        if config is self._config:
            return
        self._config = config
        try:
            login = inter_broker_login(config)
            if login != self._login:  # else it keeps its token
                self._login = login
            settings = _tls_settings_of(config)
            if settings != self._tls_settings:
                self._tls = self._reloading(settings)
                self._tls_settings = settings
        except ConfigError as error:
            _log.error("cannot change how this broker connects to others", why=str(error))

    def _reloading(self, settings: TlsSettings | None) -> ReloadingContext | None:
        if settings is None:
            return None
        try:
            return ReloadingContext(settings, client_context, self._now_ms)
        except TlsError as error:
            raise config_error(error) from error


def _tls_settings_of(config: BrokerConfig) -> TlsSettings | None:
    for listener in config.listeners:
        if listener.name == config.inter_broker_listener_name and listener.security_protocol.has_tls:
            return listener_tls_settings(config, listener)
    return None


def inter_broker_login(config: BrokerConfig) -> SaslLogin | None:
    """Return the login of this broker; None if none is configured, which a single broker does not need."""
    name = config.inter_broker_listener_name
    mechanism = config.for_listener(name).text(_MECHANISM)
    if not config.security_protocols()[name].has_sasl:
        return None
    key = f"{LISTENER_PREFIX}{name.lower()}.{mechanism.lower()}.sasl.jaas.config"
    text = config.originals.get(key)
    if mechanism == OAUTHBEARER:
        return _token_login(config, name, text or "") if config.text("barnabas.store") else None
    if mechanism not in PASSWORD_MECHANISMS or text is None:
        return None
    try:
        options = parse_jaas(text).options
    except ValueError as error:
        raise ConfigError(key, "[hidden]", str(error)) from None
    if "username" not in options or "password" not in options:
        return None
    return SaslLogin(mechanism, options["username"], options["password"])


def _token_login(config: BrokerConfig, listener: str, jaas: str) -> SaslLogin:
    own = config.for_mechanism(listener, OAUTHBEARER)
    properties = {name: own.text_or_none(name) or "" for name in _TOKEN_KEYS}
    try:
        return token_login({**properties, "sasl.jaas.config": jaas})
    except ValueError as error:
        raise ConfigError(_MECHANISM, OAUTHBEARER, str(error)) from None
