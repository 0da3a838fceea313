"""Any order of member requests: generations never decrease, and no request stays pending forever."""

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.states import ClassicState
from barnabas.wire.coordinator_records.group_metadata import GroupMetadataKey, GroupMetadataValue
from support.group_scenarios import GROUP, GroupScenario
from support.loop import in_virtual_time

NAMES = ("A", "B", "C", "D")
COMMANDS = st.one_of(
    st.builds(
        "join {} {} {} {}".format,
        st.sampled_from(NAMES),
        st.sampled_from(["version=3", "version=9", "instance=one", "instance=two"]),
        st.sampled_from(["", "", "protocols=range,sticky", "protocols=sticky"]),
        st.sampled_from(["", "topics=b", "rebalance=5000", "session=6000"]),
    ),
    st.builds("sync {0} A=a B=b C=c D=d".format, st.sampled_from(NAMES)),
    st.builds("heartbeat {}".format, st.sampled_from(NAMES)),
    st.builds("leave {}".format, st.sampled_from(NAMES)),
    st.builds("reset {}".format, st.sampled_from(NAMES)),
    st.builds("wait {}".format, st.sampled_from([1, 3000, 5000, 10_000, 60_000, 400_000])),
    st.sampled_from(["disk fails", "disk works", "restart", "leave instance=one", "delete"]),
    st.just("broker group.max.size=2"),
)

#: Longer than any timeout of a member.
LONG_MS = 1_000_000


def group_of(scenario: GroupScenario) -> ClassicGroup | None:
    assert scenario.runner is not None
    group = scenario.runner.shard.groups.get(GROUP)
    assert group is None or isinstance(group, ClassicGroup)
    return group


def check_generations(scenario: GroupScenario) -> None:
    """Check that generations in the log never decrease until the group is deleted."""
    generation = -1
    for batch in scenario.log.batches:
        for record, _ in batch.records:
            assert isinstance(record.key, GroupMetadataKey)  # type: ignore[union-attr]
            value = record.value  # type: ignore[union-attr]
            assert value is None or isinstance(value, GroupMetadataValue)
            assert value is None or value.generation >= generation
            generation = -1 if value is None else value.generation


async def check_restart(scenario: GroupScenario) -> None:
    """Check that a stable group is restored from the log."""
    before = group_of(scenario)
    if before is not None and before.state in (ClassicState.STABLE, ClassicState.EMPTY):
        membership = (before.generation, before.leader, before.static_members, list(before.members))
        work = [member.assignment for member in before.members.values()]
        stored = scenario.log.batches[-1].records[-1][0].value  # type: ignore[union-attr]
        await scenario.run("restart")
        after = group_of(scenario)
        assert after is not None
        if before.is_empty and not stored.generation:  # a group without a completed rebalance
            return
        assert membership == (after.generation, after.leader, after.static_members, list(after.members))
        assert work == [member.assignment for member in after.members.values()]


@settings(max_examples=150)
@given(st.lists(COMMANDS, max_size=25))
def test_random_member_requests_keep_the_invariants(commands: list[str]) -> None:
    @in_virtual_time
    async def play() -> None:
        scenario = GroupScenario()
        for command in commands:
            await scenario.run(command)
        await scenario.run("disk works")
        check_generations(scenario)
        if "disk fails" not in commands:  # only this broker then knows that all members have left
            await check_restart(scenario)
        await scenario.run(f"wait {LONG_MS}")
        group = group_of(scenario)
        assert group is None or (group.is_empty and not group.pending_members)
        assert not scenario.pending_count, "a request is never answered"
        await scenario.end()

    play()
