"""What went wrong, in one line: Spark wraps errors in those of Java, and these around tracebacks of Python."""

import re

_PY4J = re.compile(r"An error occurred while calling .*?\n:? *", re.DOTALL)
_TRACEBACK = "Traceback (most recent call last):"


class FlowError(Exception):
    """A flow that cannot be as it is declared, or rows that it may not bear; said for people."""


def one_line_error(error: Exception) -> str:
    """One line for people: of a traceback what was raised in the end, else the first line."""
    if isinstance(error, FlowError):
        return str(error)
    lines = _PY4J.sub("", str(error), count=1).strip().splitlines() or [type(error).__name__]
    where = next((index for index, line in enumerate(lines) if line.strip().endswith(_TRACEBACK)), None)
    if where is not None:
        raised = (line.strip() for line in lines[where + 1 :] if line[:1].strip())
        return next(raised, lines[0].strip())
    return lines[0].strip()
