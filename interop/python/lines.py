"""The interface of every client program: a JSON command on each input line, its response on an output line.

A command is ``{"do": NAME, ...arguments}``; a response is ``{"ok": RESULT}`` or, when the client raised an exception,
``{"error": NAME, "message": TEXT}`` with the error's name as that client's users see it. interop/README.md lists the
commands and their results.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

#: Time limit of a client for a connection, records, a delivery or a response.
PATIENCE_S = float(os.environ.get("INTEROP_PATIENCE_S", "20"))

#: SASL mechanism, user and password of the client; empty without SASL.
LOGIN = tuple(
    os.environ[name]
    for name in ("INTEROP_MECHANISM", "INTEROP_USER", "INTEROP_PASSWORD")
    if name in os.environ
)

#: Files in PEM for TLS: the authority that the client trusts, and its own key and certificate; empty without TLS.
TLS = tuple(os.environ[name] for name in ("INTEROP_AUTHORITY", "INTEROP_KEYSTORE") if name in os.environ)

PROTOCOL = ("SASL_" if LOGIN else "") + ("SSL" if TLS else "PLAINTEXT")

Operation = Callable[..., object]
_operations: dict[str, Operation] = {}


@dataclass
class Record:
    """A record in a command: text or null key and value, headers in order."""

    key: str | None
    value: str | None
    headers: list[tuple[str, str | None]] = field(default_factory=list)
    timestamp: int | None = None  #: milliseconds; None leaves it to the client
    offset: int | None = None


class TimedOut(Exception):
    """The client did not return the expected data within PATIENCE_S."""


def encode(text: str | None) -> bytes | None:
    """Encode text as bytes on the wire; null stays null."""
    return None if text is None else text.encode()


def decode(data: bytes | str | None) -> str | None:
    """Decode bytes from the wire as text; null stays null."""
    return data.decode() if isinstance(data, bytes) else data


def encode_headers(record: Record) -> list[tuple[str, bytes | None]]:
    """Encode a record's headers in the form of the Python clients."""
    return [(name, encode(value)) for name, value in record.headers]


def operation(function: Operation) -> Operation:
    """Register ``function`` as the command of its name."""
    _operations[function.__name__] = function
    return function


def serve(name_of: Callable[[Exception], str]) -> None:
    """Answer every command on standard input until it ends."""
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line), name_of)), flush=True)


def _answer(command: dict[str, Any], name_of: Callable[[Exception], str]) -> dict[str, object]:
    function = _operations[command.pop("do")]
    if "records" in command:
        command["records"] = [Record(**each) for each in command["records"]]
    try:
        return {"ok": _plain(function(**command))}
    except Exception as error:
        return {"error": name_of(error), "message": str(error)}


def _plain(result: object) -> object:
    if isinstance(result, list) and result and isinstance(result[0], Record):
        return [asdict(record) for record in result]
    return result


def class_name(error: Exception) -> str:
    """Return the error's class name, for clients with a class for each error."""
    return type(error).__name__
