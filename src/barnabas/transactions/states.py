"""The states of a transactional id and their transitions (KIP-98, KIP-890)."""

from enum import StrEnum


class TransactionState(StrEnum):
    """The names of DescribeTransactions and ListTransactions."""

    EMPTY = "Empty"  #: has a producer id, but no transaction
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"  #: committed for good; markers are being written
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"  #: every partition has its marker
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"  #: expired; the tombstone follows
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"  #: will be aborted by the coordinator


_T = TransactionState

TRANSITIONS: dict[TransactionState, frozenset[TransactionState]] = {
    _T.EMPTY: frozenset({_T.EMPTY, _T.ONGOING, _T.PREPARE_ABORT, _T.DEAD}),
    _T.ONGOING: frozenset({_T.ONGOING, _T.PREPARE_COMMIT, _T.PREPARE_ABORT, _T.PREPARE_EPOCH_FENCE}),
    _T.PREPARE_COMMIT: frozenset({_T.COMPLETE_COMMIT}),
    _T.PREPARE_ABORT: frozenset({_T.COMPLETE_ABORT}),
    _T.COMPLETE_COMMIT: frozenset({_T.EMPTY, _T.ONGOING, _T.PREPARE_ABORT, _T.DEAD}),
    _T.COMPLETE_ABORT: frozenset({_T.EMPTY, _T.ONGOING, _T.PREPARE_ABORT, _T.DEAD}),
    _T.DEAD: frozenset(),
    _T.PREPARE_EPOCH_FENCE: frozenset({_T.PREPARE_ABORT}),
}
assert TRANSITIONS.keys() == set(TransactionState)

#: The numbers in `__transaction_state`.
STATUSES: tuple[TransactionState, ...] = (
    _T.EMPTY, _T.ONGOING, _T.PREPARE_COMMIT, _T.PREPARE_ABORT, _T.COMPLETE_COMMIT, _T.COMPLETE_ABORT,
    _T.DEAD, _T.PREPARE_EPOCH_FENCE,
)  # fmt: skip
STATUS_OF = {state: status for status, state in enumerate(STATUSES)}

#: The outcome is decided and markers are being written; nothing else may happen until all are written.
PREPARED = frozenset({_T.PREPARE_COMMIT, _T.PREPARE_ABORT})

#: There is no transaction.
IDLE = frozenset({_T.EMPTY, _T.COMPLETE_COMMIT, _T.COMPLETE_ABORT})
