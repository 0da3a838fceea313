"""SASL settings of one listener: mechanisms, users of PLAIN, session lifetimes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.jaas import PLAIN_MODULE, parse_jaas
from barnabas.config.keys.broker import LISTENER_PREFIX
from barnabas.config.oauth import OAUTHBEARER, OauthSettings, oauth_settings

PLAIN = "PLAIN"
MECHANISMS = (PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)

_USER_PREFIX = "user_"


@dataclass(frozen=True, slots=True)
class SaslSettings:
    """The SASL settings of one listener."""

    mechanisms: tuple[str, ...]
    plain_users: Mapping[str, str] = field(repr=False)  #: user name -> password
    users_file: Path | None  #: file with more users of PLAIN
    session_ms_max: Mapping[str, int]  #: session lifetime by mechanism; 0 for no limit
    receive_bytes_max: int  #: size limit of one frame until the authentication is complete
    oauth: OauthSettings | None = None  #: None if OAUTHBEARER is not among the mechanisms


def sasl_settings(config: BrokerConfig, listener_name: str) -> SaslSettings:
    """Return the settings of a listener with a SASL protocol.

    :raises ConfigError: For an unknown mechanism, a malformed PLAIN login, or unusable settings of OAUTHBEARER.
    """
    own = config.for_listener(listener_name)
    mechanisms = own.items("sasl.enabled.mechanisms")
    _check_mechanisms(listener_name, mechanisms)
    prefix = f"{LISTENER_PREFIX}{listener_name.lower()}."
    users_file = own.text("barnabas.sasl.plain.users.file")
    oauth = config.for_mechanism(listener_name, OAUTHBEARER)
    return SaslSettings(
        mechanisms=mechanisms,
        plain_users=_plain_users(config, f"{prefix}{PLAIN.lower()}.sasl.jaas.config"),
        users_file=Path(users_file) if users_file else None,
        session_ms_max={
            mechanism: _session_ms_max(config, own, prefix, mechanism) for mechanism in mechanisms
        },
        receive_bytes_max=own.integer("sasl.server.max.receive.size"),
        oauth=oauth_settings(oauth) if OAUTHBEARER in mechanisms else None,
    )


def _check_mechanisms(listener_name: str, mechanisms: tuple[str, ...]) -> None:
    known = ", ".join(MECHANISMS)
    if not mechanisms:
        reason = f"listener {listener_name} must offer a mechanism: {known}"
        raise ConfigError("sasl.enabled.mechanisms", mechanisms, reason)
    for mechanism in mechanisms:
        if mechanism not in MECHANISMS:
            reason = f"listener {listener_name} cannot offer '{mechanism}': it must be one of {known}"
            raise ConfigError("sasl.enabled.mechanisms", mechanisms, reason)


def _session_ms_max(config: BrokerConfig, own: BrokerConfig, prefix: str, mechanism: str) -> int:
    key = "connections.max.reauth.ms"
    name = f"{prefix}{mechanism.lower()}.{key}"
    return max(0, config.integer(name) if config.is_set(name) else own.integer(key))


def _plain_users(config: BrokerConfig, key: str) -> dict[str, str]:
    text = config.originals.get(key)
    if text is None:
        return {}
    try:
        entry = parse_jaas(text)
    except ValueError as error:
        raise ConfigError(key, "[hidden]", str(error)) from None
    if entry.module != PLAIN_MODULE:
        raise ConfigError(key, entry.module, f"must be {PLAIN_MODULE}")
    return {
        name.removeprefix(_USER_PREFIX): password
        for name, password in entry.options.items()
        if name.startswith(_USER_PREFIX)
    }
