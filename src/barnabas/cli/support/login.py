"""The login of commands: the option `--command-config`, which every command that connects to brokers has."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from barnabas.client.auth.sasl import SaslLogin

COMMAND_CONFIG = "command_config"
#: With a login, the file has all of these properties.
LOGIN_PROPERTIES = ("security.protocol", "sasl.mechanism", "sasl.jaas.config")
Option = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        envvar="BARNABAS_COMMAND_CONFIG",
        help="Kafka client properties: security.protocol, sasl.mechanism, sasl.jaas.config (default: no login).",
    ),
]


class _CommandConfig:
    """The file given by the option; read once, and only by commands that need it."""

    def __init__(self, file: Path, warn: Callable[[str], None]) -> None:
        self._file = file
        self._warn = warn

    @functools.cached_property
    def content(self) -> "tuple[SaslLogin | None, Mapping[str, str]]":
        """Return the login and all properties; warns of suspect properties.

        :raises ValueError: If a property is not valid.
        """
        from barnabas.client.core.properties import login_from_properties, suspect_properties
        from barnabas.config.properties import read_properties

        try:
            lines = list(read_properties(self._file.read_text(encoding="utf-8")))
            for warning in suspect_properties(lines):
                self._warn(f"--command-config {self._file}: {warning}")
            properties = {line.key: line.value for line in lines}
            return login_from_properties(properties), properties
        except ValueError as error:
            message = f"--command-config {self._file}: {error}"
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
    """Make `current_login` use this file within the block; None stands for no login.

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
    return _read()[0]


def login_properties() -> dict[str, str]:
    """Return the login properties by Kafka's names, for code that makes its own connections, such as Spark jobs.

    :raises OSError: As `current_login`.
    :raises ValueError: As `current_login`.
    """
    login, properties = _read()
    return {} if login is None else {name: properties[name] for name in LOGIN_PROPERTIES}


def _read() -> "tuple[SaslLogin | None, Mapping[str, str]]":
    current = _current.get()
    return (None, {}) if current is None else current.content
