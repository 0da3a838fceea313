"""Java's .properties format, as `java.util.Properties.load` reads it."""

from collections.abc import Iterator
from typing import NamedTuple

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    """A key and its value, with the number of the line on which it begins, counted from 1."""

    line: int
    key: str
    value: str
    is_key_alone: bool  #: has no separator, which Java reads as an empty value


def parse_properties(text: str) -> dict[str, str]:
    """Return the keys and values in `text`; the last value of a repeated key wins.

    :raises ValueError: When a `\\u` escape lacks its four hexadecimal digits.
    """
    return {line.key: line.value for line in read_properties(text)}


def read_properties(text: str) -> Iterator[Property]:
    """Iterate over the properties in `text`.

    :raises ValueError: As `parse_properties`, with the line number.
    """
    for number, line in _logical_lines(text):
        try:
            key, value = _split(line)
        except ValueError as error:
            message = f"line {number}: {error}"
            raise ValueError(message) from None
        yield Property(number, key, value, _key_end(line) == len(line))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of lines without comments and leading blanks; a backslash at the end continues a line."""
    pending = ""
    first = 0
    continued = False
    for number, line in enumerate(_lines(text), 1):
        line = line.lstrip(_BLANKS)
        if not continued and line[:1] in ("", "#", "!"):
            continue
        first = first if continued else number
        continued = _is_continued(line)
        pending += line[:-1] if continued else line
        if not continued:
            yield first, pending
            pending = ""
    if pending:
        yield first, pending


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    end = _key_end(line)
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return _unescape(line[:end]), _unescape(rest)


def _key_end(line: str) -> int:
    escaped = False
    for index, character in enumerate(line):
        if not escaped and character in "=: \t\f":
            return index
        escaped = character == "\\" and not escaped
    return len(line)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    rest = iter(text)
    characters = "".join(_escaped(rest) if character == "\\" else character for character in rest)
    return characters.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escaped(characters: Iterator[str]) -> str:
    character = next(characters, "")
    if character != "u":
        return _ESCAPES.get(character, character)
    digits = "".join(next(characters, "") for _ in range(4))
    if len(digits) != 4 or not set(digits) <= set("0123456789abcdefABCDEF"):
        message = f"'\\u{digits}' is not a valid character: expected four hexadecimal digits after \\u"
        raise ValueError(message)
    return chr(int(digits, 16))
