"""Record the transitions of a state machine during a test run."""

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import pytest

StateT = TypeVar("StateT")


def pairs_of(table: Mapping[StateT, Collection[StateT]]) -> set[tuple[StateT, StateT]]:
    """Return every transition of a table."""
    return {(state, target) for state, targets in table.items() for target in targets}


class Seen:
    """Records transitions."""

    def __init__(self) -> None:
        self.pairs: set[tuple[Any, Any]] = set()

    def watch(self, monkeypatch: pytest.MonkeyPatch, machine: type, name: str) -> None:
        """Wrap a method or function of `machine` that takes the machine first, and leaves it in its next state or
        returns it.
        """
        move = getattr(machine, name)

        def watched(machine: Any, *arguments: Any, **keywords: Any) -> Any:
            before = machine.state
            outcome = move(machine, *arguments, **keywords)
            after = machine if outcome is None else outcome
            self.pairs.add((before, after.state))
            return outcome

        monkeypatch.setattr(machine, name, watched)
