"""Run the scenarios in tests/scenarios/groups_consumer and groups_migration."""

from pathlib import Path

import pytest

from barnabas.coordinator.result import CoordinatorResult
from barnabas.groups.consumer import heartbeat_update as progress
from barnabas.groups.consumer.group import ConsumerGroup, GroupState
from barnabas.groups.consumer.reconciliation import TRANSITIONS
from support.consumer_scenarios import ConsumerScenario
from support.group_worlds import GroupWorld
from support.loop import on_loop
from support.migration_scenarios import MigrationScenario
from support.scenarios import files_of, replay
from support.transitions import Seen, pairs_of

_S = GroupState
#: Transitions of a group by one request, timer or cluster change; a first member passes all before its response.
GROUP_TRANSITIONS = {
    _S.EMPTY: {_S.ASSIGNING, _S.STABLE},
    _S.ASSIGNING: {_S.EMPTY, _S.RECONCILING, _S.STABLE},
    _S.RECONCILING: {_S.EMPTY, _S.ASSIGNING, _S.STABLE},
    _S.STABLE: {_S.EMPTY, _S.ASSIGNING, _S.RECONCILING},
}


@pytest.mark.parametrize("path", files_of("groups_consumer"), ids=lambda path: path.stem)
def test_a_scenario_has_the_recorded_output(path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        await replay(path, ConsumerScenario().run)

    scenario()


@pytest.mark.parametrize("path", files_of("groups_migration"), ids=lambda path: path.stem)
def test_a_migration_scenario_has_the_recorded_output(path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        await replay(path, MigrationScenario().run)

    scenario()


def test_the_scenarios_cover_every_transition_of_a_member(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen()
    seen.watch(monkeypatch, progress, "reconcile")
    run_all_scenarios()
    assert seen.pairs == pairs_of(TRANSITIONS)


def test_the_scenarios_cover_every_transition_of_a_consumer_group(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[tuple[GroupState, GroupState]] = set()
    perform = GroupWorld._perform

    def watched(world: GroupWorld, result: CoordinatorResult) -> bool:
        before = state_of(world)
        is_appended = perform(world, result)
        after = state_of(world)
        if before is not None and after not in (None, before):
            seen.add((before, after))
        return is_appended

    monkeypatch.setattr(GroupWorld, "_perform", watched)
    run_all_scenarios()
    assert seen == pairs_of(GROUP_TRANSITIONS)


def run_all_scenarios() -> None:
    for path in files_of("groups_consumer"):
        test_a_scenario_has_the_recorded_output(path)
    for path in files_of("groups_migration"):
        test_a_migration_scenario_has_the_recorded_output(path)


def state_of(world: GroupWorld) -> GroupState | None:
    group = world.shard.groups.get("g")
    return group.state if isinstance(group, ConsumerGroup) else None
