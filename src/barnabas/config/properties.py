"""Java's .properties format, as `java.util.Properties.load` reads it."""

from collections.abc import Iterator

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """The keys and values in `text`; of a key that comes twice the last value stays.

    :raises ValueError: When a `\\u` escape lacks its four hexadecimal digits.
    """
    return dict(_split(line) for line in _logical_lines(text))


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and leading blanks; one that ends in a lone backslash goes on in the next."""
    pending = ""
    continued = False
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = line.lstrip(_BLANKS)
        if not continued and line[:1] in ("", "#", "!"):
            continue
        continued = _is_continued(line)
        pending += line[:-1] if continued else line
        if not continued:
            yield pending
            pending = ""
    if pending:
        yield pending


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
        message = f"'\\u{digits}' is not a character: four hexadecimal digits are expected after \\u"
        raise ValueError(message)
    return chr(int(digits, 16))
