"""The schema registry of a broker: its address, and how it connects to the broker."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec

from barnabas.base.hosts import EVERY_INTERFACE, is_loopback
from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.core.address import BrokerAddress
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.listeners import Listener
from barnabas.net.listener import StartError
from barnabas.registry.basic_auth import BasicAuth
from barnabas.registry.embedded import EmbeddedRegistry
from barnabas.registry.options import RegistrySettings
from barnabas.server.inter_broker import inter_broker_login
from barnabas.server.web import https_context, own_tls
from barnabas.telemetry.http import LOOPBACK, parse_listener
from barnabas.telemetry.logs import get_logger
from barnabas.tls.settings import TlsError

_log = get_logger("barnabas.server")

LISTENER_KEY = "barnabas.registry.listener"
_SSL_KEY = "barnabas.registry.ssl.enable"


def embedded_registry(
    config: BrokerConfig, addresses: Sequence[tuple[str, str, int]], now_ms: Callable[[], int]
) -> EmbeddedRegistry | None:
    """Return the registry of a broker with the open listeners `addresses` (name, host, port); None if it has none.

    :raises StartError: If it cannot be served.
    """
    address = config.text(LISTENER_KEY)
    if not address:
        return None
    if find_spec("uvicorn") is None or find_spec("starlette") is None:
        advice = "pip install '.[registry]' in a checkout of Barnabas"
        message = f"{LISTENER_KEY} needs packages that are not installed: {advice}"
        raise StartError(message)
    users_file = config.text("barnabas.registry.users.file")
    try:
        if users_file:
            BasicAuth(users_file)
        https = https_context(config, now_ms, _SSL_KEY)
        listener, login = _own_listener(config)
        tls = own_tls(config, listener, has_keys=True)
    except (TlsError, ConfigError, ValueError) as error:
        message = f"The schema registry cannot be served: {error}."
        raise StartError(message) from error
    host, port = parse_listener(address)
    bound = {name: (host, port) for name, host, port in addresses}
    own_host, own_port = bound[listener.name]
    own = LOOPBACK if own_host in EVERY_INTERFACE else own_host
    if tls is not None and tls.verifies_host_name and listener.advertised is not None:
        own = listener.advertised.host or own
    settings = RegistrySettings.on(
        host,
        str(BrokerAddress(own, own_port)),
        topic=config.text("barnabas.registry.topic"),
        login=login,
        tls=tls,
        users_file=users_file,
    )
    if not users_file and not is_loopback(host):
        _log.warning(
            "any client that can reach the schema registry may change schemas; set barnabas.registry.users.file",
            listener=address,
        )
    return EmbeddedRegistry(host, port, settings, https)


def _own_listener(config: BrokerConfig) -> tuple[Listener, SaslLogin | None]:
    """Return the listener and the login of brokers, or else a listener without logins.

    :raises ConfigError: If every listener asks for a login, and the broker has none.
    """
    login = inter_broker_login(config)
    by_name = {listener.name: listener for listener in config.listeners}
    between = by_name.get(config.inter_broker_listener_name)
    if between is not None and (login is not None or not between.security_protocol.has_sasl):
        return between, login
    for listener in config.listeners:
        if not listener.security_protocol.has_sasl:
            return listener, None
    reason = (
        "the registry needs a listener without SASL, or the login of brokers: "
        "sasl.mechanism.inter.broker.protocol and listener.name.NAME.MECHANISM.sasl.jaas.config"
    )
    raise ConfigError(LISTENER_KEY, config.text(LISTENER_KEY), reason)
