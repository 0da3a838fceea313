"""Run tests/scenarios/groups."""

from pathlib import Path

import pytest

from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.states import TRANSITIONS
from support.group_scenarios import GroupScenario
from support.loop import in_virtual_time
from support.migration_scenarios import MigrationScenario
from support.scenarios import files_of, replay
from support.transitions import Seen, pairs_of


@pytest.mark.parametrize("path", files_of("groups"), ids=lambda path: path.stem)
@in_virtual_time
async def test_a_scenario_has_the_recorded_output(path: Path) -> None:
    scenario = GroupScenario()
    await replay(path, scenario.run)
    await scenario.end()


def test_the_scenarios_cover_every_transition_of_a_classic_group(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen()
    seen.watch(monkeypatch, ClassicGroup, "transition")
    for path in files_of("groups"):
        test_a_scenario_has_the_recorded_output(path)
    for path in files_of("groups_migration"):
        go_from_protocol_to_protocol(path)
    assert seen.pairs == pairs_of(TRANSITIONS)


@in_virtual_time
async def go_from_protocol_to_protocol(path: Path) -> None:
    await replay(path, MigrationScenario().run)
