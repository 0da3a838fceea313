"""Validates a broker's listeners and their changes at runtime."""

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.listeners import Listener
from barnabas.config.sasl import sasl_settings
from barnabas.config.tls import config_error, listener_tls_settings
from barnabas.tls.contexts import server_context
from barnabas.tls.handshakes import agree
from barnabas.tls.settings import TlsError, TlsSettings


def check_listeners(config: BrokerConfig) -> None:
    """Refuse listeners with an unusable login, or with settings of TLS that contradict each other.

    :raises ConfigError: For an unknown mechanism, a malformed login, an unknown version of TLS and the like.
    """
    for listener in config.listeners:
        if listener.security_protocol.has_sasl:
            sasl_settings(config, listener.name)
        if listener.security_protocol.has_tls:
            _check_tls_settings(listener_tls_settings(config, listener), listener)


def _check_tls_settings(settings: TlsSettings, listener: Listener) -> None:
    from barnabas.tls.principals import PrincipalRules  # imports re2, which a start without TLS does not need

    if settings.keys is None:
        reason = f"must be set for listener {listener.name}, which uses TLS; or ssl.keystore.key"
        raise ConfigError("ssl.keystore.location", "", reason)
    try:
        PrincipalRules(settings.principal_rules)
    except TlsError as error:
        raise config_error(error) from error


def check_listener_change(before: BrokerConfig, after: BrokerConfig) -> None:
    """Allow listeners to be added and removed; a kept one must keep its security protocol.

    :raises ConfigError: Otherwise, or if new keys or certificates cannot be used.
    """
    protocols = {listener.name: listener.security_protocol for listener in before.listeners}
    for listener in after.listeners:
        known = protocols.get(listener.name, listener.security_protocol)
        if listener.security_protocol is not known:
            reason = (
                f"listener {listener.name} is open with {known.name}, which cannot be changed while it is"
            )
            raise ConfigError("listener.security.protocol.map", listener.security_protocol.name, reason)
    check_listeners(after)
    for listener in after.listeners:
        if listener.security_protocol.has_tls:
            _check_certificates(before, after, listener)


def _check_certificates(before: BrokerConfig, after: BrokerConfig, listener: Listener) -> None:
    settings = listener_tls_settings(after, listener)
    former = listener_tls_settings(before, listener) if listener in before.listeners else None
    if settings == former:
        return
    try:
        server_context(settings)
    except TlsError as error:
        raise config_error(error) from error
    if former is not None and listener.name == after.inter_broker_listener_name:
        _check_trust(former, settings, listener)


def _check_trust(former: TlsSettings, settings: TlsSettings, listener: Listener) -> None:
    """Refuse a change after which a broker and the others, which still have the former settings, could not connect."""
    try:
        connected = agree(former, former)
    except TlsError:
        connected = False
    between = f"listener {listener.name} is that between brokers"
    if connected and not agree(former, settings):
        location = settings.keys.location if settings.keys else ""
        reason = f"must have a certificate that the other brokers trust: {between}"
        raise ConfigError("ssl.keystore.location", location, reason)
    if connected and not agree(settings, former):
        location = settings.trust.location if settings.trust else ""
        reason = f"must have what the certificates of the other brokers need: {between}"
        raise ConfigError("ssl.truststore.location", location, reason)
