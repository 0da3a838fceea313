"""Variables in configurations: `${PROVIDER:PATH:KEY}` stands for a value from a file, a directory or the environment
(KIP-297, KIP-421, KIP-887).

`config.providers` names the providers, `config.providers.NAME.class` says what each is, and `.param.` restricts it.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from barnabas.config.definition import ConfigError
from barnabas.config.keys.broker import listener_base
from barnabas.config.properties import parse_properties

PROVIDERS_KEY = "config.providers"
ALLOWED_PATHS, ALLOWED_NAMES = "allowed.paths", "allowlist.pattern"

_VARIABLE = re.compile(r"\$\{([^}:]*):(?:([^}:]*):)?([^}]*)\}")
_SECRET_CHARACTERS_MIN = 4

_PACKAGE = "org.apache.kafka.common.config.provider."

#: (path, key, parameters) -> the value. Raises `LookupError` with the reason.
_Provider = Callable[[str, str, Mapping[str, str]], str]


class Variables(NamedTuple):
    """Variables in properties. Errors show them instead of their values, which may be secrets."""

    #: key -> its text with variables, and with their values
    texts: Mapping[str, tuple[str, str]] = MappingProxyType({})
    #: value -> its variable
    values: Mapping[str, str] = MappingProxyType({})

    def message_of(self, error: Exception) -> str:
        """Return the message of an error without values of variables."""
        from barnabas.tls.settings import (
            TlsError,  # imports dataclasses, which a start without errors does not need
        )

        if isinstance(error, ConfigError | TlsError):
            found = self._text_of(error.key, error.value)
            if found is not None:
                text, resolved = found
                kind = TlsError if isinstance(error, TlsError) else ConfigError
                return str(kind(error.key, text, _without_parts(error.reason, resolved, text)))
        return self.hide(str(error))

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the variables in errors of the configuration within the block."""
        try:
            yield
        except ConfigError as error:
            error.args = (self.message_of(error),)
            raise

    def hide(self, message: str) -> str:
        """Return a message with variables in place of their values, except those that cannot be secret."""
        values = sorted(filter(_can_be_secret, self.values), key=len, reverse=True)
        if not values:
            return message
        known = {value.lower(): self.values[value] for value in values}
        pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, values))})(?!\w)"
        return re.sub(pattern, lambda found: known[found[0].lower()], message, flags=re.IGNORECASE)

    def _text_of(self, key: str, value: object) -> tuple[str, str] | None:
        """Return the text of a key, or of a listener's key that overrides it, if the value is all or a part of it."""
        parts = value if isinstance(value, tuple) else (str(value),)
        for name, (text, resolved) in self.texts.items():
            if key in (name, listener_base(name)) and all(part in resolved for part in parts):
                return text, resolved
        return None


class Resolved(NamedTuple):
    """Properties with values for their variables."""

    properties: dict[str, str]
    variables: Variables


def resolve_variables(
    properties: Mapping[str, str], environment: Mapping[str, str] | None = None
) -> Resolved:
    """Return the properties with values for their variables; text of other providers is kept.

    :raises ConfigError: If a provider is not valid, or a variable has no value. The message does not quote values.
    """
    variables = os.environ if environment is None else environment
    providers = {name: _provider(name, properties, variables) for name in _names(properties)}
    found: dict[str, str] = {}

    def resolve(key: str, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            name, path, variable = match[1], match[2] or "", match[3]
            if name not in providers:
                return match[0]
            prefix = f"{PROVIDERS_KEY}.{name}.param."
            parameters = {
                each.removeprefix(prefix): setting
                for each, setting in properties.items()
                if each.startswith(prefix)
            }
            try:
                resolved = providers[name](path, variable, parameters)
            except LookupError as error:
                raise ConfigError(key, match[0], str(error.args[0])) from None
            found[resolved.strip()] = match[0]
            return resolved

        return _VARIABLE.sub(value, text)

    values = {
        key: text if key.startswith(PROVIDERS_KEY) else resolve(key, text) for key, text in properties.items()
    }
    texts = {key: (text.strip(), values[key]) for key, text in properties.items() if values[key] != text}
    return Resolved(values, Variables(texts, found))


def _without_parts(reason: str, value: str, text: str) -> str:
    """Return a reason with a text in place of quoted parts of a value."""
    return re.sub(r"'([^']+)'", lambda quoted: f"'{text}'" if quoted[1] in value else quoted[0], reason)


def _can_be_secret(value: str) -> bool:
    """Whether a value must be hidden. Numbers and short words occur in messages that are not about the value."""
    is_ordinary = (
        len(value) < _SECRET_CHARACTERS_MIN or value.isdecimal() or value.lower() in ("true", "false")
    )
    return not is_ordinary


def _names(properties: Mapping[str, str]) -> list[str]:
    return [name.strip() for name in properties.get(PROVIDERS_KEY, "").split(",") if name.strip()]


def _provider(name: str, properties: Mapping[str, str], environment: Mapping[str, str]) -> _Provider:
    def matches(pattern: str, variable: str) -> bool:
        try:
            return re.fullmatch(pattern, variable) is not None
        except re.error as error:
            key = f"{PROVIDERS_KEY}.{name}.param.{ALLOWED_NAMES}"
            raise ConfigError(key, pattern, f"must be a regular expression: {error}") from None

    def from_environment(path: str, variable: str, parameters: Mapping[str, str]) -> str:
        if path:
            raise LookupError(f"the provider {name} has no paths: use ${{{name}:{variable}}}")
        pattern = parameters.get(ALLOWED_NAMES, ".*")
        if not matches(pattern, variable):
            raise LookupError(f"{ALLOWED_NAMES} of the provider {name} allows {pattern}")
        if variable not in environment:
            raise LookupError("the environment has no such variable")
        return environment[variable]

    known: dict[str, _Provider] = {
        "FileConfigProvider": _from_file,
        "DirectoryConfigProvider": _from_directory,
        "EnvVarConfigProvider": from_environment,
    }
    key = f"{PROVIDERS_KEY}.{name}.class"
    class_name = properties.get(key, "").strip()
    if class_name.removeprefix(_PACKAGE) not in known:
        names = ", ".join(f"{_PACKAGE}{each}" for each in known)
        raise ConfigError(key, class_name, f"must be one of {names}")
    return known[class_name.removeprefix(_PACKAGE)]


def _from_file(path: str, variable: str, parameters: Mapping[str, str]) -> str:
    """Return the value of a key in a .properties file."""
    _check_path(path)
    text = _text_of(path, parameters)
    try:
        values = parse_properties(text)
    except ValueError as error:  # it quotes characters that may be part of a secret
        line, _, _ = str(error).partition(":")
        raise LookupError(f"{path}, {line}: \\u must be followed by four hexadecimal digits") from None
    if variable not in values:
        raise LookupError(f"{path} has no such key")
    return values[variable]


def _from_directory(path: str, variable: str, parameters: Mapping[str, str]) -> str:
    """Return the content of the file that is called like the key."""
    _check_path(path)
    if variable in ("", ".", "..") or "/" in variable:
        raise LookupError("must be the name of a file in the directory")
    return _text_of(f"{path}/{variable}", parameters).rstrip("\r\n")


def _check_path(path: str) -> None:
    if not path:
        raise LookupError("has no path: use ${PROVIDER:PATH:KEY}")


def _text_of(path: str, parameters: Mapping[str, str]) -> str:
    allowed = [each.strip() for each in parameters.get(ALLOWED_PATHS, "").split(",") if each.strip()]
    try:
        real = Path(path).resolve()
    except (ValueError, RuntimeError) as error:  # a NUL character, a loop of symbolic links
        raise LookupError(f"{path!r} is not a valid path: {error}") from None
    if allowed and not any(real.is_relative_to(Path(each).resolve()) for each in allowed):
        raise LookupError(f"{ALLOWED_PATHS} of the provider allows {', '.join(allowed)}")
    try:
        return real.read_text(encoding="utf-8")
    except OSError as error:
        raise LookupError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise LookupError(f"{path} is not text in UTF-8") from None
