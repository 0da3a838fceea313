"""Subscriptions by regular expression (KIP-848).

The syntax is RE2's, as in Apache Kafka. Matching takes time in proportion to the length of the name, for any
expression. Python's own `re` has no such limit, and could block the broker.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

from barnabas.wire.errors import ErrorCode, KafkaError

#: Minimum interval at which groups match known expressions with new topics.
REFRESH_INTERVAL_MS_MIN = 10_000

_QUIET = re2.Options()
_QUIET.log_errors = False


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """The topics that an expression matched at a revision."""

    topics: frozenset[str]
    version: int  #: revision of the image
    timestamp_ms: int


def check_regex(pattern: str) -> None:
    """Check an expression.

    :raises KafkaError: INVALID_REGULAR_EXPRESSION, with the reason.
    """
    _compiled(pattern)


def matching(pattern: str, names: Collection[str]) -> frozenset[str]:
    """Return the names that an expression matches as a whole. `names` are cached and must not change.

    :raises KafkaError: INVALID_REGULAR_EXPRESSION.
    """
    return _matcher(pattern).matching(names)


class _Matcher:
    """An expression and its matches, so that a name is matched once."""

    def __init__(self, compiled: Any) -> None:
        self._matches = compiled.fullmatch
        self._last: tuple[Collection[str], frozenset[str]] = ((), frozenset())  #: names, and those that match

    def matching(self, names: Collection[str]) -> frozenset[str]:
        """Return the matching names. May be called in any thread."""
        known, matched = self._last
        if names is not known:
            new_names = frozenset(name for name in names if name not in known and self._matches(name))
            matched = new_names.union(name for name in matched if name in names)
            self._last = names, matched
        return matched


@lru_cache(maxsize=32)  # each may hold the names of an earlier image
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
