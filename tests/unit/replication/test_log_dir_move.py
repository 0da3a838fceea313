"""One move between log directories: decisions, transitions, and the common part of two logs."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from barnabas.log.log_directory import LogDirectory
from barnabas.replication.log_dir_move import (
    TRANSITIONS,
    MoveAction,
    MoveState,
    ReplicaMove,
    decide_move,
    truncation_offset,
)

A, B, C = (LogDirectory(Path(f"/{name}")) for name in "abc")
NOTHING, START, CANCEL, RESTART = MoveAction.NOTHING, MoveAction.START, MoveAction.CANCEL, MoveAction.RESTART


@pytest.mark.parametrize(
    ("future", "destination", "action"),
    [
        (None, A, NOTHING),
        (None, B, START),
        (B, A, CANCEL),
        (B, B, NOTHING),
        (B, C, RESTART),
    ],
)
def test_the_action_depends_on_the_present_and_requested_directories(
    future: LogDirectory | None, destination: LogDirectory, action: MoveAction
) -> None:
    assert decide_move(A, future, destination) is action


STATES = {
    MoveState.COPYING: {"promoted", "cancelled", "failed", "stopped"},
    MoveState.PROMOTED: {"done", "failed", "stopped"},
}


@pytest.mark.parametrize(("before", "after"), list(product(MoveState, MoveState)))
def test_only_transitions_in_the_table_are_allowed(before: MoveState, after: MoveState) -> None:
    assert (after in TRANSITIONS[before]) == (after.value in STATES.get(before, set()))


def test_every_state_is_reached_and_an_illegal_transition_shows_the_history() -> None:
    assert set(MoveState) == {MoveState.COPYING}.union(*TRANSITIONS.values())
    log: Any = Epochs([], 0)
    move = ReplicaMove(log, log, log)
    move.transition(MoveState.PROMOTED, "at offset 3")
    move.transition(MoveState.DONE, "in /b")
    with pytest.raises(AssertionError, match="promoted: at offset 3"):
        move.transition(MoveState.COPYING, "again")


class Epochs:
    """Leader epochs of a log: (epoch, first offset) in ascending order."""

    topic_partition = "t-0"

    def __init__(self, entries: list[tuple[int, int]], end: int) -> None:
        self.entries, self.log_end_offset = entries, end

    @property
    def latest_epoch(self) -> int | None:
        return self.entries[-1][0] if self.entries else None

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        later = [start for known, start in self.entries if known > epoch]
        earlier = [known for known, _ in self.entries if known <= epoch]
        if self.latest_epoch is None or epoch > self.latest_epoch:
            return -1, -1
        return (earlier[-1] if earlier else epoch), (later[0] if later else self.log_end_offset)


@pytest.mark.parametrize(
    ("copy", "source", "end"),
    [
        (Epochs([], 0), Epochs([], 0), 0),
        (Epochs([], 0), Epochs([(0, 0)], 9), 0),
        (Epochs([], 9), Epochs([], 5), 5),
        (Epochs([(0, 0)], 5), Epochs([(0, 0)], 9), 5),
        (Epochs([(0, 0)], 9), Epochs([(0, 0)], 5), 5),  # the end of the log was lost in a power failure
        (
            Epochs([(0, 0)], 9),
            Epochs([(0, 0), (1, 6)], 12),
            6,
        ),  # truncated at 6, and appended to by another leader
        (Epochs([(0, 0), (1, 4)], 9), Epochs([(0, 0), (2, 4)], 12), 4),
        (Epochs([(0, 0), (1, 4)], 9), Epochs([(0, 0), (2, 7)], 12), 4),
        (Epochs([(3, 0), (5, 50)], 100), Epochs([(3, 0), (6, 80)], 120), 50),
        (Epochs([(2, 0)], 9), Epochs([(1, 0)], 9), None),
        (Epochs([(2, 0)], 9), Epochs([], 9), None),
        (Epochs([(0, 0)], 4), Epochs([(1, 6)], 9), 4),  # the log start has advanced
    ],
)
def test_a_copy_is_valid_up_to_the_end_of_its_last_epoch_in_the_log(
    copy: Epochs, source: Epochs, end: int | None
) -> None:
    assert truncation_offset(copy, source) == end
