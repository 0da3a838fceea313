"""Kafka's own client properties, as `--command-config` files hold them: whom to log in as."""

from collections.abc import Mapping

from barnabas.client.sasl import MECHANISMS, SaslLogin
from barnabas.config.jaas import parse_jaas

_PROTOCOLS = ("PLAINTEXT", "SASL_PLAINTEXT")


def login_from_properties(properties: Mapping[str, str]) -> SaslLogin | None:
    """The login that `security.protocol`, `sasl.mechanism` and `sasl.jaas.config` ask for; None for none.

    Other properties are for other clients and say nothing to this one.

    :raises ValueError: When one of them cannot be. No password is quoted.
    """
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in _PROTOCOLS:
        message = f"security.protocol={protocol}: this client speaks {' and '.join(_PROTOCOLS)}"
        raise ValueError(message)
    if protocol == "PLAINTEXT":
        return None
    mechanism = properties.get("sasl.mechanism", "GSSAPI").strip()
    if mechanism not in MECHANISMS:
        message = f"sasl.mechanism={mechanism}: this client knows {', '.join(MECHANISMS)}"
        raise ValueError(message)
    user, password = _user(properties.get("sasl.jaas.config", ""))
    return SaslLogin(mechanism, user, password)


def _user(text: str) -> tuple[str, str]:
    try:
        options = parse_jaas(text).options
    except ValueError as error:
        message = f"sasl.jaas.config {error}"
        raise ValueError(message) from None
    if not options.get("username") or "password" not in options:
        message = "sasl.jaas.config must have the options username and password"
        raise ValueError(message)
    return options["username"], options["password"]
