"""Formats bytes of records for pages as JSON, text or hexadecimal, and as searchable text."""

import json
import re
from typing import NamedTuple

#: Characters of one field that a page shows at most; the whole field can be downloaded.
SHOWN_CHARACTERS_MAX = 20_000
#: Larger fields are not parsed as JSON.
_JSON_BYTES_MAX = 256 * 1024
#: Bytes of one field that are searched at most.
SEARCHED_BYTES_MAX = 1024 * 1024
#: Bytes of a large field that decide whether it is text.
_HEAD_BYTES = 4 * SHOWN_CHARACTERS_MAX
_LINE_BYTES = 16
_LINE_CHARACTERS = 160
_DEPTH_MAX = 100
WAYS = ("auto", "json", "text", "hex")

_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
#: One or more escapes in a JSON string: a character may take two (a surrogate pair).
_JSON_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\.", re.DOTALL)
#: Bytes in the text column beside hexadecimal, in Latin-1.
_LETTERS = bytes(each if 32 <= each < 127 else 0xB7 for each in range(256))


class Shown(NamedTuple):
    """A displayed field: `kind` is null, empty, json, text or hex; `is_cut` if the text is incomplete."""

    kind: str
    text: str
    size_bytes: int
    is_cut: bool = False
    line: str = ""  #: the beginning, on one line


def shown(data: bytes | None, way: str = "auto") -> Shown:
    """The field in the format `way` (one of WAYS); if it is not JSON or text, in the next simpler format."""
    if data is None:
        return Shown("null", "", 0)
    if not data:
        return Shown("empty", "", 0)
    text = None if way == "hex" else _text(data, lenient=way == "text")
    if text is None:
        return _hex(data)
    pretty = _json(text) if way in ("auto", "json") and len(data) <= _JSON_BYTES_MAX else None
    body = printable((text if pretty is None else pretty)[: SHOWN_CHARACTERS_MAX + 1])
    kind = "text" if pretty is None else "json"
    line = " ".join(body[: 4 * _LINE_CHARACTERS].split())[:_LINE_CHARACTERS]
    return Shown(kind, body[:SHOWN_CHARACTERS_MAX], len(data), len(body) > SHOWN_CHARACTERS_MAX, line)


def searched(data: bytes | None, way: str = "auto") -> str:
    """Return the text that `shown` shows of a field, not cut after `SHOWN_CHARACTERS_MAX`, without layout.

    Runs of blanks and line ends are one blank, so that text copied from a page is found. Hexadecimal is followed
    by its column of letters. Of a field larger than `SEARCHED_BYTES_MAX` it is the beginning.
    """
    if not data:
        return ""
    head = data[:SEARCHED_BYTES_MAX]
    text = None if way == "hex" else _text(data, lenient=way == "text")
    if text is None:
        return f"{head.hex(' ')} {' '.join(_letters(head).split())}"
    if len(data) > _JSON_BYTES_MAX:
        text = head.decode(errors="replace")
    pretty = _json(text, None) if way in ("auto", "json") and len(data) <= _JSON_BYTES_MAX else None
    return " ".join(printable(text if pretty is None else pretty).split())


def unformatted(data: bytes, way: str = "auto") -> str | None:
    """Return the text of a field without any blanks, which is cheap; formatting only adds and removes blanks.

    If JSON is unescaped for display, a second line has the unescaped form. None if the displayed text has other
    characters: hexadecimal, or escaped control characters.
    """
    text = None if way == "hex" or len(data) > _JSON_BYTES_MAX else _text(data, lenient=way == "text")
    if text is None:
        return None
    texts = [text, _JSON_ESCAPES.sub(_unescaped, text)] if "\\" in text and way != "text" else [text]
    squeezed = ["".join(each.split()) for each in texts]
    return "\n".join(squeezed) if all(map(str.isprintable, squeezed)) else None


def printable(text: str) -> str:
    """The text with invisible and direction-changing characters written as `\\u202e`."""
    if text.isprintable():
        return text
    unseen = [each for each in set(text) if each not in "\n\t" and not each.isprintable()]
    return text.translate({ord(each): each.encode("unicode_escape").decode("ascii") for each in unseen})


def indented(text: str, characters_max: int | None = None) -> str:
    """JSON with one line per element, with printable escapes (`\\u00fc`) unescaped.

    Elements are otherwise kept as written. Cut soon after `characters_max`.

    :raises ValueError: When it is nested so deeply that indentation would be most of it.
    """
    out: list[str] = []
    depth = length = 0
    before = ""
    for match in _JSON_TOKEN.finditer(text):
        token, gap = match[0], ""
        if "\\" in token:
            token = _JSON_ESCAPES.sub(_unescaped, token)
        if token in "}]":
            depth -= 1
            gap = "" if before in ("{", "[") else "\n" + "  " * depth
        elif before in ("{", "[", ","):
            gap = "\n" + "  " * depth
        out.append(gap + (": " if token == ":" else token))
        length += len(out[-1])
        if characters_max is not None and length > characters_max:
            break
        depth += token in ("{", "[")
        if depth > _DEPTH_MAX:
            message = f"this has more than {_DEPTH_MAX} levels"
            raise ValueError(message)
        before = token
    return "".join(out)


def _unescaped(escapes: re.Match[str]) -> str:
    """Unescape printable characters that need no escape in a JSON string."""
    if not escapes[0].startswith("\\u"):
        return "/" if escapes[0] == "\\/" else escapes[0]
    text: str = json.loads(f'"{escapes[0]}"')
    return "".join(
        each if each.isprintable() and each not in '"\\' else json.dumps(each)[1:-1] for each in text
    )


def _text(data: bytes, *, lenient: bool) -> str | None:
    """The bytes as UTF-8, if they are text; in any case if `lenient`."""
    head = data[:_HEAD_BYTES] if len(data) > _JSON_BYTES_MAX else data
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        cut_off = head is not data and error.start >= len(head) - 3
        if not cut_off and not lenient:
            return None
        text = head.decode(errors="replace" if lenient else "ignore")
    binary = any(ord(each) < 32 and each not in "\n\r\t" for each in text[:SHOWN_CHARACTERS_MAX])
    return None if binary and not lenient else text


def _json(text: str, characters_max: int | None = SHOWN_CHARACTERS_MAX) -> str | None:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        json.loads(text)
        return indented(text, characters_max)
    except (ValueError, RecursionError):
        return None


def _hex(data: bytes) -> Shown:
    lines_max = SHOWN_CHARACTERS_MAX // (_LINE_BYTES * 4 + 12)
    lines = []
    for start in range(0, min(len(data), lines_max * _LINE_BYTES), _LINE_BYTES):
        part = data[start : start + _LINE_BYTES]
        lines.append(f"{start:06x}  {part.hex(' '):<{_LINE_BYTES * 3}} {_letters(part)}")
    line = data[: _LINE_CHARACTERS // 4].hex(" ")
    return Shown("hex", "\n".join(lines), len(data), len(data) > lines_max * _LINE_BYTES, line)


def _letters(data: bytes) -> str:
    return data.translate(_LETTERS).decode("latin-1")
