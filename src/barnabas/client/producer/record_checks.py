"""Refuses what a record cannot carry before it is in a batch: later it would fail all records of its batch."""

from collections.abc import Iterable

_TIMESTAMP_BITS = 64


def check_record(
    key: object, value: object, headers: Iterable[tuple[object, object]], timestamp_ms: object
) -> None:
    """Check what an untyped caller may give; None as the timestamp stands for the present.

    :raises TypeError: When a part has another type than a record's.
    :raises ValueError: When a timestamp has more than 64 bits, or UTF-8 cannot represent a header's name.
    """
    _check_bytes("key", key)
    _check_bytes("value", value)
    for name, header_value in headers:
        _check_name(name)
        _check_bytes("header's value", header_value)
    if timestamp_ms is not None:
        _check_timestamp(timestamp_ms)


def _check_bytes(what: str, given: object) -> None:
    if given is not None and not isinstance(given, (bytes, bytearray, memoryview)):
        message = f"a {what} must be bytes or None, not {type(given).__name__}"
        raise TypeError(message)


def _check_name(given: object) -> None:
    if not isinstance(given, str):
        message = f"a header's name must be text, not {type(given).__name__}"
        raise TypeError(message)
    given.encode()


def _check_timestamp(given: object) -> None:
    if not isinstance(given, int):
        message = f"a timestamp must be a whole number of milliseconds, not {type(given).__name__}"
        raise TypeError(message)
    if given.bit_length() >= _TIMESTAMP_BITS:
        message = f"a timestamp has at most {_TIMESTAMP_BITS} bits: {given}"
        raise ValueError(message)
