"""The users that `barnabas serve --add-scram` makes, and where their passwords come from."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from barnabas.config.definition import ConfigError

OPTION = "--add-scram"
VARIABLE = "BARNABAS_ADD_SCRAM"  #: NAME=PASSWORD, several with blanks between them

_ARGUMENTS_START, _ARGUMENTS_END = 47, 48  #: of the fields of /proc/self/stat, from 0


def first_users(options: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The passwords by name, of the options and of the environment; the options are stronger.

    :raises ConfigError: For one that is not NAME=PASSWORD or NAME=@FILE, or whose file cannot be read.
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


def conceal(secrets: Iterable[str]) -> None:
    """Write over `secrets` where process listings show this process's arguments, as far as the system lets us."""
    wanted = list(secrets)
    if not wanted:
        return
    import ctypes  # 2 ms that few starts need

    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        # What stands before the last ")" are two fields.
        start, end = int(fields[_ARGUMENTS_START - 2]), int(fields[_ARGUMENTS_END - 2])
    except (OSError, ValueError, IndexError):
        return  # not Linux: arguments cannot be found
    if not 0 < start < end:
        return
    for position, size_bytes in places(ctypes.string_at(start, end - start), wanted):
        ctypes.memset(start + position, ord("*"), size_bytes)


def places(arguments: bytes, secrets: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Where in the arguments each secret stands as a value, as often as it does: (position, size in bytes).

    A user may be called like the password, and one password may begin like another.
    """
    for secret in filter(None, (each.encode() for each in secrets)):
        for found in re.finditer(rb"(?<=[=\s])" + re.escape(secret), arguments):
            yield found.start(), len(secret)
