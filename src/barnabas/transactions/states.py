"""The states of a transactional id, and where each may lead (KIP-98, KIP-890)."""

from enum import StrEnum


class TransactionState(StrEnum):
    """As they are named in DescribeTransactions and ListTransactions."""

    EMPTY = "Empty"  #: has a producer id, and has no transaction yet
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"  #: committed for good; the partitions are being told
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"  #: every partition has its marker
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"  #: expired; its tombstone follows
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"  #: on the way to an abort that the producer did not ask for


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

#: How each is written in `__transaction_state`.
STATUSES: tuple[TransactionState, ...] = (
    _T.EMPTY, _T.ONGOING, _T.PREPARE_COMMIT, _T.PREPARE_ABORT, _T.COMPLETE_COMMIT, _T.COMPLETE_ABORT,
    _T.DEAD, _T.PREPARE_EPOCH_FENCE,
)  # fmt: skip
STATUS_OF = {state: status for status, state in enumerate(STATUSES)}

#: The outcome is decided and the partitions are being told: until they all know, nothing else may happen.
PREPARED = frozenset({_T.PREPARE_COMMIT, _T.PREPARE_ABORT})

#: No transaction is open or on its way.
IDLE = frozenset({_T.EMPTY, _T.COMPLETE_COMMIT, _T.COMPLETE_ABORT})
