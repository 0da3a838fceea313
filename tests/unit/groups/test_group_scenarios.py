"""Runs tests/scenarios/groups: stories of groups and their members."""

from pathlib import Path

import pytest

from support.group_scenarios import GroupScenario
from support.loop import in_virtual_time
from support.scenarios import files_of, replay


@pytest.mark.parametrize("path", files_of("groups"), ids=lambda path: path.stem)
@in_virtual_time
async def test_groups_go_as_the_story_tells(path: Path) -> None:
    scenario = GroupScenario()
    await replay(path, scenario.run)
    await scenario.end()
