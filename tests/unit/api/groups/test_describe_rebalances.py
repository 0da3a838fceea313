"""DescribeRebalances on a broker."""

from pathlib import Path

from barnabas.metadata.acls import decide_create_acls
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.barnabas_messages.describe_rebalances import DescribeRebalancesRequest
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from support.acls import ALICE, AUTHORIZED, ROOT
from support.consumer_groups import heartbeat_request, join_request
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node
from support.waiting import reached


async def coordinated(running: RunningNode, *topics: str) -> None:
    await running.create(*(new_topic(name, 2) for name in topics))
    await running.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 6)
    await reached(lambda: not running.broker.groups.is_loading)


@on_loop
async def test_rebalances_are_described_until_the_group_is_deleted(tmp_path: Path) -> None:
    async with running_node(tmp_path) as running:
        await coordinated(running, "a")
        await running.ask(join_request("g", "m1", "a"), 1)
        running.clock.advance(50)
        await running.ask(heartbeat_request("g", "m1", -1), 1)
        response = await running.ask(DescribeRebalancesRequest("g"))
        assert (response.error_code, response.group_type, response.group_state) == (0, "consumer", "Empty")
        left, joined = response.rebalances
        assert (joined.status, joined.epoch, joined.completed_ms - joined.started_ms) == ("completed", 2, 0)
        [event] = joined.events
        assert (event.kind, event.member.member_id) == ("joined", "m1")
        [assignment] = joined.assignments
        assert (assignment.member, assignment.topics[0].name) == (event.member, "a")
        assert assignment.topics[0].partition_indexes == [0, 1]
        assert (left.events[0].kind, left.started_ms - joined.started_ms) == ("left", 50)
        await running.ask(DeleteGroupsRequest(["g"]))
        gone = await running.ask(DescribeRebalancesRequest("g"))
        assert gone.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        await running.ask(join_request("g", "m1", "a"), 1)
        assert len((await running.ask(DescribeRebalancesRequest("g"))).rebalances) == 1


@on_loop
async def test_topics_that_the_principal_may_not_describe_are_left_out(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as running:
        running.connection.principal = ROOT
        await coordinated(running, "a", "secret")
        await running.ask(join_request("g", "m1", "a", "secret"), 1)
        pattern = (PatternType.LITERAL, ALICE, "*", AclOperation.DESCRIBE, AclPermission.ALLOW)
        acls = [
            AclBinding(ResourceType.GROUP, "g", *pattern),
            AclBinding(ResourceType.TOPIC, "a", *pattern),
        ]
        await running.broker.metadata.write(lambda image: decide_create_acls(image.acls, acls))
        running.connection.principal = ALICE
        [rebalance] = (await running.ask(DescribeRebalancesRequest("g"))).rebalances
        assert [topic.name for topic in rebalance.assignments[0].topics] == ["a"]


@on_loop
async def test_an_empty_group_id_is_invalid(tmp_path: Path) -> None:
    async with running_node(tmp_path) as running:
        await coordinated(running)
        assert (await running.ask(DescribeRebalancesRequest(""))).error_code == ErrorCode.INVALID_GROUP_ID
