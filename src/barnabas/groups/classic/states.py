"""The states of a classic group, and which may follow which."""

from enum import StrEnum


class ClassicState(StrEnum):
    """Where a group is, named as Apache Kafka names it."""

    EMPTY = "Empty"  #: no members; offsets may be left
    PREPARING_REBALANCE = "PreparingRebalance"  #: waits for members to join
    COMPLETING_REBALANCE = "CompletingRebalance"  #: waits for the leader's assignment
    STABLE = "Stable"  #: every member has, or may fetch, its assignment
    DEAD = "Dead"  #: forgotten


_S = ClassicState
#: What may follow each state.
TRANSITIONS: dict[ClassicState, frozenset[ClassicState]] = {
    _S.EMPTY: frozenset({_S.PREPARING_REBALANCE, _S.DEAD}),
    _S.PREPARING_REBALANCE: frozenset({_S.COMPLETING_REBALANCE, _S.EMPTY, _S.DEAD}),
    _S.COMPLETING_REBALANCE: frozenset({_S.STABLE, _S.PREPARING_REBALANCE, _S.DEAD}),
    _S.STABLE: frozenset({_S.PREPARING_REBALANCE, _S.DEAD}),
    _S.DEAD: frozenset(),
}
assert TRANSITIONS.keys() == set(ClassicState)
