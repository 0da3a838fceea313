"""DescribeTransactions and ListTransactions (KIP-664, KIP-994, KIP-1152)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import re2

from barnabas.transactions.states import TransactionState
from barnabas.transactions.transaction import TransactionMetadata
from barnabas.wire.errors import ErrorCode, KafkaError

_QUIET = re2.Options()
_QUIET.log_errors = False


@dataclass(frozen=True, slots=True)
class Filter:
    """Filter of transactional ids; missing fields match all."""

    states: frozenset[str] = frozenset()  #: names; unknown ones match nothing
    producer_ids: frozenset[int] = frozenset()
    duration_ms: int = -1  #: minimum duration of the transaction; negative matches all
    pattern: Any = None  #: compiled RE2 expression for the whole transactional id

    def matches(self, transaction: TransactionMetadata, now_ms: int) -> bool:
        return (
            transaction.state is not TransactionState.DEAD
            and (not self.producer_ids or transaction.producer_id in self.producer_ids)
            and (not self.states or transaction.state in self.states)
            and (self.duration_ms < 0 or now_ms - transaction.started_ms > self.duration_ms)
            and (self.pattern is None or self.pattern.fullmatch(transaction.transactional_id) is not None)
        )


def unknown_states(names: Iterable[str]) -> list[str]:
    """Return each unknown name of a state once."""
    known = set(TransactionState)
    return [name for name in dict.fromkeys(names) if name not in known]


def compiled(pattern: str | None) -> Any:
    """Compile a pattern of whole transactional ids; None for no or an empty pattern.

    :raises KafkaError: INVALID_REGULAR_EXPRESSION.
    """
    if not pattern:
        return None
    try:
        return re2.compile(pattern, _QUIET)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error.args[0]
        message = f"Transaction ID pattern `{pattern}` is not a valid regular expression: {reason}."
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from error
