"""The coordinator's stories in tests/scenarios/transactions, told for readers of Kafka."""

from pathlib import Path

import pytest

from barnabas.transactions.states import TRANSITIONS
from barnabas.transactions.transaction import TransactionMetadata
from support.loop import on_loop
from support.scenarios import files_of, replay
from support.transaction_scenarios import TransactionScenario
from support.transitions import Seen, pairs_of


@pytest.mark.parametrize("path", files_of("transactions"), ids=lambda path: path.stem)
def test_a_story_goes_as_it_is_told(path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        await replay(path, TransactionScenario().run)

    scenario()


def test_every_transition_of_a_transactional_id_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen()
    seen.watch(monkeypatch, TransactionMetadata, "moved")
    for path in files_of("transactions"):
        test_a_story_goes_as_it_is_told(path)
    assert seen.pairs == pairs_of(TRANSITIONS)
