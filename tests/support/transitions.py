"""Which transitions of a state machine a run of tests goes through."""

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import pytest

StateT = TypeVar("StateT")


def pairs_of(table: Mapping[StateT, Collection[StateT]]) -> set[tuple[StateT, StateT]]:
    """Every transition of a table."""
    return {(state, target) for state, targets in table.items() for target in targets}


class Seen:
    """Remembers transitions."""

    def __init__(self) -> None:
        self.pairs: set[tuple[Any, Any]] = set()

    def watch(self, monkeypatch: pytest.MonkeyPatch, machine: type, name: str) -> None:
        """Look on at a method or function of `machine` that takes the machine first and leaves it, or gives it back,
        in its next state.
        """
        move = getattr(machine, name)

        def watched(machine: Any, *arguments: Any, **keywords: Any) -> Any:
            before = machine.state
            outcome = move(machine, *arguments, **keywords)
            after = machine if outcome is None else outcome
            self.pairs.add((before, after.state))
            return outcome

        monkeypatch.setattr(machine, name, watched)
