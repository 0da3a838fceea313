"""Login and TLS of commands: the option `--command-config`, which every command that connects to brokers has."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from barnabas.client.auth.sasl import SaslLogin
    from barnabas.tls.settings import TlsSettings

COMMAND_CONFIG = "command_config"
#: Beginnings of the properties that say how to connect.
_SECURITY_PREFIXES = ("security.protocol", "sasl.", "ssl.")
Option = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        envvar="BARNABAS_COMMAND_CONFIG",
        help="Kafka client properties for login and TLS, such as security.protocol and ssl.truststore.location.",
    ),
]


class _Content(NamedTuple):
    login: "SaslLogin | None" = None
    tls: "TlsSettings | None" = None
    properties: Mapping[str, str] = MappingProxyType({})


class _CommandConfig:
    """The file given by the option; read once, and only by commands that need it."""

    def __init__(self, file: Path, warn: Callable[[str], None]) -> None:
        self._file = file
        self._warn = warn
        self.hide: Callable[[str], str] = str  #: removes values of the file's variables from a message

    @functools.cached_property
    def content(self) -> "_Content":
        """Return login, TLS and all properties; warns of suspect properties.

        :raises ValueError: If a property is not valid.
        """
        from barnabas.client.core.properties import (
            login_from_properties,
            suspect_properties,
            tls_from_properties,
        )
        from barnabas.config.definition import ConfigError
        from barnabas.config.properties import read_properties
        from barnabas.config.providers import Variables, resolve_variables

        variables = Variables()
        try:
            lines = list(read_properties(self._file.read_text(encoding="utf-8")))
            for warning in suspect_properties(lines):
                self._warn(f"--command-config {self._file}: {warning}")
            properties, variables = resolve_variables({line.key: line.value for line in lines})
            self.hide = variables.hide
            return _Content(login_from_properties(properties), tls_from_properties(properties), properties)
        except (ValueError, ConfigError) as error:
            message = f"--command-config {self._file}: {variables.message_of(error)}"
            raise ValueError(message) from None


_current: ContextVar[_CommandConfig | None] = ContextVar(COMMAND_CONFIG, default=None)


def with_command_config(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option to a command, if it has --bootstrap."""
    signature = inspect.signature(command)
    if "bootstrap" not in signature.parameters:
        return command
    option = inspect.Parameter(
        COMMAND_CONFIG, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Option
    )
    command.__dict__["__signature__"] = signature.replace(parameters=[*signature.parameters.values(), option])
    command.__annotations__ = {**command.__annotations__, COMMAND_CONFIG: Option}
    return command


@contextmanager
def command_config(file: object, warn: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Make `current_login` and `current_tls` use this file within the block; None stands for neither.

    :param warn: Called for each suspect line when the file is first read.
    """
    token = _current.set(_CommandConfig(file, warn) if isinstance(file, Path) else None)
    try:
        yield
    finally:
        _current.reset(token)


def current_login() -> "SaslLogin | None":
    """Return the login that the command was called with; None if there is none.

    :raises OSError: If the file cannot be read.
    :raises ValueError: If a property is not valid.
    """
    return _read().login


def current_tls() -> "TlsSettings | None":
    """Return the TLS settings that the command was called with; None without TLS.

    :raises OSError: As `current_login`.
    :raises ValueError: As `current_login`.
    """
    return _read().tls


def security_properties() -> dict[str, str]:
    """Return the properties of login and TLS, for code that makes its own connections, such as Spark jobs.

    :raises OSError: As `current_login`.
    :raises ValueError: As `current_login`.
    """
    found = _read()
    if found.login is None and found.tls is None:
        return {}
    return {name: value for name, value in found.properties.items() if name.startswith(_SECURITY_PREFIXES)}


def without_values(message: str) -> str:
    """Return a message with the variables of the file in place of their values, which may be secrets."""
    current = _current.get()
    return message if current is None else current.hide(message)


def _read() -> _Content:
    current = _current.get()
    return _Content() if current is None else current.content
