"""Answers to shells that request completions."""

import contextlib
import os
import sys
from collections.abc import Iterator

#: If this variable is set, the command line prints completions instead of running a command.
_VARIABLE = "_BARNABAS_COMPLETE"


@contextlib.contextmanager
def handle_completion() -> Iterator[None]:
    """If a shell requests completions, exit right after printing them, without waiting for threads of queries."""
    if _VARIABLE not in os.environ:
        yield
        return
    from typer.completion import completion_init  # type: ignore[attr-defined]  # imported there for re-export

    completion_init()
    try:
        yield
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(end.code if isinstance(end.code, int) else 0)
