"""Errors of tables; their messages are for users."""

import re

from barnabas.wire.errors import KafkaError

_COLOUR = re.compile("\x1b\\[[0-9;]*m")  # delta-rs writes for terminals


class TableError(Exception):
    """A table cannot be kept: its settings, its location or its schema are not right."""


class ConcurrentCommit(Exception):
    """Another writer committed first. Nothing was written; the table must be read again."""


def describe_error(error: BaseException) -> str:
    """Return an error in one line; those of libraries with their type."""
    text = " ".join(_COLOUR.sub("", str(error)).split())
    if isinstance(error, TableError | KafkaError | ConnectionError):
        return text
    return f"{type(error).__name__}: {text}"
