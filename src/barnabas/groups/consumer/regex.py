"""Subscriptions by regular expression (KIP-848): which topics match.

The syntax is RE2's, as on Apache Kafka, and so is the promise that comes with it: matching takes time in proportion to
the name, whatever a client asks for. Python's own `re` has no such bound, and would stop the broker.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

from barnabas.wire.errors import ErrorCode, KafkaError

#: Not more often do groups look for topics that a known expression has come to match.
REFRESH_INTERVAL_MS_MIN = 10_000

_QUIET = re2.Options()
_QUIET.log_errors = False


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """What an expression matched when somebody last looked."""

    topics: frozenset[str]
    version: int  #: revision of the image
    timestamp_ms: int


def check_regex(pattern: str) -> None:
    """Refuse what is no expression.

    :raises KafkaError: INVALID_REGULAR_EXPRESSION, saying what is wrong with it.
    """
    _compiled(pattern)


def matching(pattern: str, names: Collection[str]) -> frozenset[str]:
    """The names that an expression matches as a whole. `names` are remembered and must not change.

    :raises KafkaError: INVALID_REGULAR_EXPRESSION.
    """
    return _matcher(pattern).matching(names)


class _Matcher:
    """An expression and what it has matched: a name that it has seen already is not matched again."""

    def __init__(self, compiled: Any) -> None:
        self._matches = compiled.fullmatch
        self._last: tuple[Collection[str], frozenset[str]] = ((), frozenset())  #: names, and which match

    def matching(self, names: Collection[str]) -> frozenset[str]:
        """May be called in any thread."""
        known, matched = self._last
        if names is not known:
            came = frozenset(name for name in names if name not in known and self._matches(name))
            matched = came.union(name for name in matched if name in names)
            self._last = names, matched
        return matched


@lru_cache(maxsize=32)  # each may hold the names of a former image
def _matcher(pattern: str) -> _Matcher:
    return _Matcher(_compiled(pattern))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    try:
        return re2.compile(pattern, _QUIET)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error.args[0]
        message = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}."
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from None
