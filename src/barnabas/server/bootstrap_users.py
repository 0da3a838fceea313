"""The users that `barnabas serve --add-scram` creates, and the sources of their passwords."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from barnabas.config.definition import ConfigError

OPTION = "--add-scram"
VARIABLE = "BARNABAS_ADD_SCRAM"  #: NAME=PASSWORD, separated by blanks


def bootstrap_users(options: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return passwords by user name; options override the environment.

    :raises ConfigError: If an entry is not NAME=PASSWORD or NAME=@FILE, or if its file cannot be read.
    """
    texts = [(VARIABLE, text) for text in environment.get(VARIABLE, "").split()]
    texts += [(OPTION, text) for text in options]
    return dict(_user(origin, text) for origin, text in texts)


def _user(origin: str, text: str) -> tuple[str, str]:
    name, equals, password = text.partition("=")
    if not name or not equals or not password:
        raise ConfigError(origin, f"{name}=...", "must be NAME=PASSWORD or NAME=@FILE")
    if not password.startswith("@"):
        return name, password
    path = Path(password[1:])
    try:
        password = path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(origin, path, f"must be a file with a password: {why}") from None
    if not password:
        raise ConfigError(origin, path, "must be a file with a password: it is empty")
    return name, password
