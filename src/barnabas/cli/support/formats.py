"""Formatting of records: kcat's format strings, and JSON."""

import base64
import json
import re
import struct
from collections.abc import Callable
from typing import Any

from barnabas.cli.support.failures import wrong_use
from barnabas.client.consumer.completed_fetch import ConsumedRecord

FORMAT_DEFAULT = "%s\\n"
_TOKEN = re.compile(r"%(.?)|\\(x[0-9a-fA-F]{2}|.?)|[^%\\]+", re.DOTALL)
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}

Render = Callable[[ConsumedRecord], bytes]


def _number(value: int) -> bytes:
    return b"%d" % value


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _headers(record: ConsumedRecord) -> bytes:
    return b",".join(
        name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in record.headers
    )


_LETTERS: dict[str, Render] = {
    "s": lambda record: record.value or b"",
    "S": lambda record: _number(_length(record.value)),
    "R": lambda record: struct.pack(">i", _length(record.value)),
    "k": lambda record: record.key or b"",
    "K": lambda record: _number(_length(record.key)),
    "T": lambda record: _number(record.timestamp_ms),
    "t": lambda record: record.topic.encode(),
    "p": lambda record: _number(record.partition),
    "o": lambda record: _number(record.offset),
    "h": _headers,
    "%": lambda _: b"%",
}


def compile_format(text: str) -> Render:
    """Return a function that formats a record as kcat's `-f` does.

    :raises CommandError: For a letter or an escape that kcat does not have.
    """
    parts = [_compile_token(token) for token in _TOKEN.finditer(text)]
    return lambda record: b"".join(part if isinstance(part, bytes) else part(record) for part in parts)


def _compile_token(token: re.Match[str]) -> bytes | Render:
    letter, escape = token[1], token[2]
    if letter is not None:
        if letter not in _LETTERS:
            raise wrong_use(f"--format: '%{letter}' is not valid", f"one of %{' %'.join(_LETTERS)}")
        return _LETTERS[letter]
    if escape is None:
        return token[0].encode()
    if len(escape) == 3:
        return bytes.fromhex(escape[1:])
    if escape not in _ESCAPES:
        raise wrong_use(f"--format: '\\{escape}' is not valid", "one of \\n \\t \\r \\0 \\\\ \\xNN")
    return _ESCAPES[escape]


def as_json(record: ConsumedRecord) -> bytes:
    """Return one line of JSON; bytes that are not UTF-8 are base64 in `key_base64` and `value_base64`.

    A key or value that was decoded with a schema registry is the JSON itself, with `key_schema_id` or
    `value_schema_id`.
    """
    fields: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        **_text("key", record.key),
        **_text("value", record.value),
        "headers": [{"key": name, **_text("value", value)} for name, value in record.headers],
    }
    text = json.dumps(fields, ensure_ascii=False)
    return text.encode(errors="backslashreplace") + b"\n"  # the escape of JSON for a lone surrogate


def _text(name: str, data: bytes | None) -> dict[str, Any]:
    if data is None:
        return {name: None}
    schema_id = getattr(data, "schema_id", None)
    if schema_id is not None:  # decoded with a schema registry, and so JSON
        return {name: json.loads(data), f"{name}_schema_id": schema_id}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}
