"""Errors in one line: Spark wraps errors in Java's, and these contain tracebacks of Python."""

import re

_PY4J = re.compile(r"An error occurred while calling .*?\n:? *", re.DOTALL)
_TRACEBACK = "Traceback (most recent call last):"


class FlowError(Exception):
    """An invalid flow, or rows that violate it; the message is for users."""


def one_line_error(error: Exception) -> str:
    """Return an error in one line: of a traceback the last exception, else the first line."""
    if isinstance(error, FlowError):
        return str(error)
    lines = _PY4J.sub("", str(error), count=1).strip().splitlines() or [type(error).__name__]
    where = next((index for index, line in enumerate(lines) if line.strip().endswith(_TRACEBACK)), None)
    if where is not None:
        raised = (line.strip() for line in lines[where + 1 :] if line[:1].strip())
        return next(raised, lines[0].strip())
    return lines[0].strip()
