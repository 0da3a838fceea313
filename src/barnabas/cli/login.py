"""Whom commands log in as: `--command-config`, which every command that speaks to brokers has."""

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
#: All of them are there where there is a login.
LOGIN_PROPERTIES = ("security.protocol", "sasl.mechanism", "sasl.jaas.config")
Option = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        envvar="BARNABAS_COMMAND_CONFIG",
        help="Kafka's client properties: security.protocol, sasl.mechanism, sasl.jaas.config.",
    ),
]


class _CommandConfig:
    """The file of the option, read once and only by commands that need it."""

    def __init__(self, file: Path, warn: Callable[[str], None]) -> None:
        self._file = file
        self._warn = warn

    @functools.cached_property
    def content(self) -> "tuple[SaslLogin | None, Mapping[str, str]]":
        """The login, and all properties; warns of those that are suspect.

        :raises ValueError: When a property is not valid.
        """
        from barnabas.client.core.properties import login_from_properties, suspect_properties
        from barnabas.config.properties import read_properties

        try:
            found = list(read_properties(self._file.read_text(encoding="utf-8")))
            for warning in suspect_properties(found):
                self._warn(f"--command-config {self._file}: {warning}")
            properties = {each.key: each.value for each in found}
            return login_from_properties(properties), properties
        except ValueError as error:
            message = f"--command-config {self._file}: {error}"
            raise ValueError(message) from None


_current: ContextVar[_CommandConfig | None] = ContextVar(COMMAND_CONFIG, default=None)


def with_command_config(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option, if it has --bootstrap."""
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
    """Have `current_login` use this file, if there is one, within the block.

    :param warn: Called for each suspect line when the file is first read.
    """
    token = _current.set(_CommandConfig(file, warn) if isinstance(file, Path) else None)
    try:
        yield
    finally:
        _current.reset(token)


def current_login() -> "SaslLogin | None":
    """The login that the command was called with; None for none.

    :raises OSError: When the file cannot be read.
    :raises ValueError: When what it says cannot be.
    """
    return _read()[0]


def login_properties() -> dict[str, str]:
    """What the command was called with to log in, by Kafka's names, for what makes connections of its own.

    :raises OSError: As `current_login`.
    :raises ValueError: Likewise.
    """
    login, properties = _read()
    return {} if login is None else {name: properties[name] for name in LOGIN_PROPERTIES}


def _read() -> "tuple[SaslLogin | None, Mapping[str, str]]":
    current = _current.get()
    return (None, {}) if current is None else current.content
