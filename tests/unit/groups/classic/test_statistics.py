"""Statistics of classic groups."""

from barnabas.groups.statistics import GroupCounts
from support.group_scenarios import GroupScenario
from support.loop import in_virtual_time


@in_virtual_time
async def test_a_rebalance_is_counted_when_the_assignment_is_stored() -> None:
    scenario = GroupScenario()
    for command in (
        "join A version=3",
        "wait 3000",
        "sync A A=a",
        "join B version=3",
        "join A",
        "disk fails",
    ):
        await scenario.run(command)
    await scenario.run("sync A A=a B=b")
    assert scenario.runner is not None
    shard = scenario.runner.shard
    assert shard.context.counts == GroupCounts(classic_rebalances_count=1)
    assert shard.statistics()["classic_groups"] == {"PreparingRebalance": 1}
    assert shard.statistics()["classic_members_count"] == 2


@in_virtual_time
async def test_a_restart_counts_no_rebalance() -> None:
    scenario = GroupScenario()
    for command in ("join A version=3", "wait 3000", "sync A A=a", "restart"):
        await scenario.run(command)
    assert scenario.runner is not None
    shard = scenario.runner.shard
    assert shard.context.counts == GroupCounts()
    assert shard.statistics()["classic_groups"] == {"Stable": 1}
