"""JAAS configurations, as in Kafka's `sasl.jaas.config`: `MODULE FLAG key="value" ...;`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"

_BARE = r"""[^\s"'=;\\]+"""
_WORD = rf"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|{_BARE})"""
_OPTION = re.compile(rf"({_WORD})\s*=\s*({_WORD})", re.DOTALL)
_ENTRY = re.compile(
    rf"\s*(?P<module>{_BARE})\s+(?P<flag>required|requisite|sufficient|optional)"
    rf"(?P<options>(?:\s+{_WORD}\s*=\s*{_WORD})*)\s*;\s*",
    re.DOTALL | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """A login module. Its options may hold passwords, so they are not printed."""

    module: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(text: str) -> JaasEntry:
    """Return the only login module of a configuration.

    :raises ValueError: When the text is malformed. The message does not quote it: it may hold passwords.
    """
    match = _ENTRY.fullmatch(text)
    if match is None:
        message = 'must be one login module: MODULE required key="value" ... with a semicolon at the end'
        raise ValueError(message)
    options = {_unquoted(key): _unquoted(value) for key, value in _OPTION.findall(match["options"])}
    return JaasEntry(match["module"], options)


def _unquoted(word: str) -> str:
    if word[0] not in "\"'":
        return word
    return re.sub(r"\\(.)", r"\1", word[1:-1], flags=re.DOTALL)


def quoted(text: str) -> str:
    """Return a text quoted as a word of a configuration."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
