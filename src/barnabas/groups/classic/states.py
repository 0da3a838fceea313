"""The states of a classic group and their transitions."""

from enum import StrEnum


class ClassicState(StrEnum):
    """Kafka's names of the states."""

    EMPTY = "Empty"  #: no members; there may be offsets
    PREPARING_REBALANCE = "PreparingRebalance"  #: members have to join
    COMPLETING_REBALANCE = "CompletingRebalance"  #: waits for the leader's assignment
    STABLE = "Stable"  #: members have, or may fetch, their assignments
    DEAD = "Dead"  #: deleted


_S = ClassicState
#: state -> possible next states
TRANSITIONS: dict[ClassicState, frozenset[ClassicState]] = {
    _S.EMPTY: frozenset({_S.PREPARING_REBALANCE, _S.DEAD}),
    _S.PREPARING_REBALANCE: frozenset({_S.COMPLETING_REBALANCE, _S.EMPTY, _S.DEAD}),
    _S.COMPLETING_REBALANCE: frozenset({_S.STABLE, _S.PREPARING_REBALANCE, _S.DEAD}),
    _S.STABLE: frozenset({_S.PREPARING_REBALANCE, _S.DEAD}),
    _S.DEAD: frozenset(),
}
assert TRANSITIONS.keys() == set(ClassicState)
