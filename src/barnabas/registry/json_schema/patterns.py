"""Regular expressions of clients, on RE2: its time grows with the text alone, whatever the expression is."""

from collections.abc import Iterable
from typing import Any

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
#: Clients choose how many patterns there are, and re2 keeps the last ones.
_OPTIONS.max_mem = 512 * 1024


def names_with(pattern: str, names: Iterable[str]) -> list[str]:
    """Return the names of which a part matches a pattern; none for a pattern that RE2 does not have."""
    try:
        compiled = re2.compile(pattern, _OPTIONS)
    except (re2.error, UnicodeEncodeError):
        return []
    return [name for name in names if _is_found(compiled, name)]


def _is_found(compiled: Any, name: str) -> bool:
    try:
        return compiled.search(name) is not None
    except UnicodeEncodeError:  # JSON can have half of a surrogate pair
        return False
