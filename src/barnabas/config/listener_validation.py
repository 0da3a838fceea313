"""Validates a broker's listeners and their changes at runtime."""

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.listeners import SecurityProtocol
from barnabas.config.sasl import sasl_settings

#: The supported protocols.
_PROTOCOLS = (SecurityProtocol.PLAINTEXT, SecurityProtocol.SASL_PLAINTEXT)


def check_listeners(config: BrokerConfig) -> None:
    """Refuse listeners with unsupported security, or with an unusable login.

    :raises ConfigError: For a security protocol with TLS, an unknown mechanism, a malformed login.
    """
    for listener in config.listeners:
        if listener.security_protocol not in _PROTOCOLS:
            known = " and ".join(protocol.name for protocol in _PROTOCOLS)
            reason = (
                f"listener {listener.name} has protocol {listener.security_protocol.name}: it must be {known}"
            )
            raise ConfigError("listener.security.protocol.map", listener.security_protocol.name, reason)
        if listener.security_protocol is SecurityProtocol.SASL_PLAINTEXT:
            sasl_settings(config, listener.name)


def check_listener_change(before: BrokerConfig, after: BrokerConfig) -> None:
    """Allow listeners to be added and removed; a kept one must keep its security protocol."""
    check_listeners(after)
    protocols = {listener.name: listener.security_protocol for listener in before.listeners}
    for listener in after.listeners:
        known = protocols.get(listener.name, listener.security_protocol)
        if listener.security_protocol is not known:
            reason = (
                f"listener {listener.name} is open with {known.name}, which cannot be changed while it is"
            )
            raise ConfigError("listener.security.protocol.map", listener.security_protocol.name, reason)
