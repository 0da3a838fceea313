"""Splits the text of a .proto file into tokens."""

import re
import sys
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from barnabas.registry.schemas import InvalidSchema


class TokenKind(Enum):
    WORD = "word"
    NUMBER = "number"
    TEXT = "text"
    SYMBOL = "symbol"
    END = "end"


class ProtoToken(NamedTuple):
    """A token, and where it is."""

    kind: TokenKind
    text: str  #: as it is written; of strings with their quotes
    line: int


_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<symbol>[;{}\[\]()=,.<>:+\-/])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def tokens_of(text: str) -> Iterator[ProtoToken]:
    """Yield the tokens without white space and comments, and one of kind END behind them.

    :raises InvalidSchema: At a character that begins no token.
    """
    position, line = 0, 1
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise InvalidSchema(f"line {line}: {text[position]!r} is not valid here")
        kind = found.lastgroup
        assert kind is not None
        if kind != "space":
            yield ProtoToken(TokenKind(kind), found[0], line)
        line += found[0].count("\n")
        position = found.end()
    yield ProtoToken(TokenKind.END, "the end", line)


def unquoted(token: ProtoToken) -> str:
    """Return the value of a string; bytes are characters below 256."""
    return _ESCAPE.sub(_unescaped, token.text[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    digits, octal, short, long, other = found.groups()
    if octal is not None:
        return chr(int(octal, 8) & 0xFF)
    hexadecimal = digits or short or long
    if hexadecimal is None:
        return _ESCAPED.get(other, other)
    if int(hexadecimal, 16) > sys.maxunicode:
        raise InvalidSchema(f"{found[0]} is not a character")
    return chr(int(hexadecimal, 16))


def quoted(text: str) -> str:
    """Return a string as it is written in a .proto file."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\{ord(found[0]):03o}", escaped) + '"'
