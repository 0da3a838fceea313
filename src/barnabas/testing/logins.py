"""Settings of a broker with authentication on its first listener."""

from collections.abc import Mapping

from barnabas.client.auth.sasl import PASSWORD_MECHANISMS
from barnabas.config.jaas import PLAIN_MODULE, quoted


def login_settings(host: str, port: int, users: Mapping[str, str]) -> dict[str, str]:
    """Return a SASL listener at `port` for those users, and an open one for the broker's own calls.

    :param users: Passwords by name. PLAIN reads them from the settings; SCRAM credentials must be created separately.
    """
    options = " ".join(f"{quoted(f'user_{user}')}={quoted(password)}" for user, password in users.items())
    return {
        "listeners": f"SASL_PLAINTEXT://{host}:{port},PLAINTEXT://{host}:0",
        "sasl.enabled.mechanisms": ",".join(PASSWORD_MECHANISMS),
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {options};",
    }
