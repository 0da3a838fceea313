"""Subscriptions by regular expression (KIP-848): which topics match.

The syntax is RE2's, as on Apache Kafka, and so is the promise that comes with it: matching takes time in proportion to
the name, whatever a client asks for. Python's own `re` has no such bound, and would stop the broker.
"""

from collections.abc import Iterable
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


def matching(pattern: str, names: Iterable[str]) -> frozenset[str]:
    """The names that an expression matches as a whole."""
    compiled = _compiled(pattern)
    return frozenset(name for name in names if compiled.fullmatch(name))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    try:
        return re2.compile(pattern, _QUIET)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error.args[0]
        message = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}."
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from None
