"""Run tests/scenarios/transactions."""

from pathlib import Path

import pytest

from barnabas.transactions.states import TRANSITIONS
from barnabas.transactions.transaction import TransactionMetadata
from support.loop import on_loop
from support.scenarios import files_of, replay
from support.transaction_scenarios import TransactionScenario
from support.transitions import Seen, pairs_of


@pytest.mark.parametrize("path", files_of("transactions"), ids=lambda path: path.stem)
def test_a_scenario_has_the_recorded_output(path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        await replay(path, TransactionScenario().run)

    scenario()


def test_the_scenarios_cover_every_transition_of_a_transactional_id(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen()
    seen.watch(monkeypatch, TransactionMetadata, "moved")
    for path in files_of("transactions"):
        test_a_scenario_has_the_recorded_output(path)
    assert seen.pairs == pairs_of(TRANSITIONS)
