"""Which listeners a broker can have, and how they may change while it runs."""

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.listeners import SecurityProtocol
from barnabas.config.sasl import sasl_settings

#: What can be had.
_PROTOCOLS = (SecurityProtocol.PLAINTEXT, SecurityProtocol.SASL_PLAINTEXT)


def check_listeners(config: BrokerConfig) -> None:
    """Refuse listeners that promise a protection which there is not, or logins that cannot be.

    :raises ConfigError: For a security protocol with TLS, an unknown mechanism, an unreadable login.
    """
    for listener in config.listeners:
        if listener.security_protocol not in _PROTOCOLS:
            known = " and ".join(protocol.name for protocol in _PROTOCOLS)
            reason = f"listener {listener.name} wants {listener.security_protocol.name}; there are {known}"
            raise ConfigError("listener.security.protocol.map", listener.security_protocol.name, reason)
        if listener.security_protocol is SecurityProtocol.SASL_PLAINTEXT:
            sasl_settings(config, listener.name)


def check_listener_change(before: BrokerConfig, after: BrokerConfig) -> None:
    """Let listeners come and go; one that stays keeps its security protocol.

    :raises ConfigError: Otherwise, and as `check_listeners`.
    """
    check_listeners(after)
    protocols = {listener.name: listener.security_protocol for listener in before.listeners}
    for listener in after.listeners:
        known = protocols.get(listener.name, listener.security_protocol)
        if listener.security_protocol is not known:
            reason = (
                f"listener {listener.name} is open with {known.name}, which cannot be changed while it is"
            )
            raise ConfigError("listener.security.protocol.map", listener.security_protocol.name, reason)
