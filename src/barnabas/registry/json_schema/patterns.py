"""Regular expressions of clients, on RE2: its time grows with the text alone, whatever the expression is.

Documents and values are checked by Python's `re`, and by RE2 where `re` does not know the syntax.
"""

import re
from collections.abc import Iterable
from typing import Any

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
#: Clients choose how many patterns there are, and re2 keeps the last ones.
_OPTIONS.max_mem = 512 * 1024


def names_with(pattern: str, names: Iterable[str]) -> list[str]:
    """Return the names of which a part matches a pattern; none for a pattern that RE2 does not have."""
    compiled = _compiled(pattern)
    return [] if compiled is None else [name for name in names if _is_found(compiled, name)]


def is_pattern(text: str) -> bool:
    """Whether `re` or RE2 has this pattern."""
    return _has_re(text) or _compiled(text) is not None


def is_found(pattern: str, text: str) -> bool:
    """Whether a part of the text matches a pattern of `re` or RE2."""
    return re.search(pattern, text) is not None if _has_re(pattern) else bool(names_with(pattern, [text]))


def _has_re(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, OverflowError):
        return False
    return True


def _compiled(pattern: str) -> Any:
    """Return the expression of RE2, or None if it does not have the pattern."""
    try:
        return re2.compile(pattern, _OPTIONS)
    except (re2.error, UnicodeEncodeError):
        return None


def _is_found(compiled: Any, name: str) -> bool:
    try:
        return compiled.search(name) is not None
    except UnicodeEncodeError:  # JSON can have half of a surrogate pair
        return False
