"""The stories in tests/scenarios/groups_consumer go as they are written."""

from pathlib import Path

import pytest

from support.consumer_scenarios import ConsumerScenario
from support.loop import on_loop
from support.scenarios import files_of, replay


@pytest.mark.parametrize("path", files_of("groups_consumer"), ids=lambda path: path.stem)
def test_a_story_goes_as_it_is_written(path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        await replay(path, ConsumerScenario().run)

    scenario()
