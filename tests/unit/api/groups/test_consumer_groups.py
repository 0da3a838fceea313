"""ConsumerGroupHeartbeat and ConsumerGroupDescribe on a node."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.acls import decide_create_acls
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from support.acls import ALICE, AUTHORIZED, ROOT
from support.consumer_groups import heartbeat_request, join_request
from support.images import new_topic
from support.loop import on_loop
from support.members import classic_join_request
from support.nodes import RunningNode, running_node
from support.waiting import reached


async def coordinated(node: RunningNode, *topics: str) -> None:
    """Load the coordinator of group `g`, and create these topics."""
    await node.create(*(new_topic(name, 2) for name in topics))
    await node.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 6)
    await reached(lambda: not node.broker.groups.is_loading)


async def beat(node: RunningNode, request: ConsumerGroupHeartbeatRequest, version: int = 1) -> Any:
    return await node.ask(request, version)


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_is_described_and_leaves(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await coordinated(node, "a")
            joined = await beat(node, join_request("g", "m1", "a"), version)
            assert (joined.error_code, joined.member_id, joined.member_epoch) == (0, "m1", 2)
            [topic] = joined.assignment.topic_partitions
            assert (topic.topic_id, topic.partitions) == (node.topic_id("a"), [0, 1])
            request = ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=True)
            [group] = (await node.ask(request, version)).groups
            assert (group.error_code, group.group_state, group.group_epoch, group.assignment_epoch) == (
                0,
                "Stable",
                2,
                2,
            )
            assert (group.assignor_name, group.authorized_operations) == ("uniform", 3400)
            [member] = group.members
            assert (member.member_id, member.member_epoch, member.subscribed_topic_names) == ("m1", 2, ["a"])
            assert member.assignment == member.target_assignment
            assert member.assignment.topic_partitions[0].topic_name == "a"
            assert member.member_type == (1 if version >= 1 else -1)
            assert member.client_host.startswith("/")
            left = await beat(node, heartbeat_request("g", "m1", -1), version)
            assert (left.error_code, left.member_epoch) == (0, -1)

    scenario()


@on_loop
async def test_an_error_has_a_message(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await coordinated(node, "a")
        answer = await beat(node, heartbeat_request("g", "m1", 1))
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert answer.error_message == "Consumer group g not found."
        [group] = (await node.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 1)).groups
        assert (group.error_code, group.error_message) == (
            ErrorCode.GROUP_ID_NOT_FOUND,
            "Group g not found.",
        )


@on_loop
async def test_the_protocol_can_be_disabled(tmp_path: Path) -> None:
    async with running_node(tmp_path, group_coordinator_rebalance_protocols="classic") as node:
        await coordinated(node, "a")
        answer = await beat(node, join_request("g", "m1", "a"))
        assert (answer.error_code, answer.error_message) == (ErrorCode.UNSUPPORTED_VERSION, None)
        [group] = (await node.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 1)).groups
        assert (group.error_code, group.error_message) == (ErrorCode.UNSUPPORTED_VERSION, None)


@on_loop
async def test_an_incompatible_classic_member_is_rejected_without_a_member_id(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await coordinated(node, "a")
        await beat(node, join_request("g", "m1", "a"))
        answer = await node.ask(
            classic_join_request(group_id="g", member_id="mine", protocol_type="connect"), 9
        )
        assert (answer.error_code, answer.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")


@on_loop
async def test_a_silent_member_is_fenced_by_the_node(tmp_path: Path) -> None:
    configs = {
        "group_consumer_min_session_timeout_ms": "100",
        "group_consumer_session_timeout_ms": "100",
        "group_consumer_min_heartbeat_interval_ms": "50",
        "group_consumer_heartbeat_interval_ms": "50",
    }
    async with running_node(tmp_path, **configs) as node:
        await coordinated(node, "a")
        await beat(node, join_request("g", "m1", "a"))
        await reached(lambda: node.broker.groups.runner("g").shard.groups["g"].is_empty)


@on_loop
async def test_topics_without_describe_permission_are_neither_subscribed_to_nor_matched(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as node:
        node.connection.principal = ROOT
        await coordinated(node, "a", "ab")
        node.connection.principal = ALICE
        rules = [
            AclBinding(kind, name, PatternType.LITERAL, ALICE, "*", AclOperation.READ, AclPermission.ALLOW)
            for kind, name in ((ResourceType.GROUP, "g"), (ResourceType.TOPIC, "a"))
        ]
        await node.broker.metadata.write(lambda image: decide_create_acls(image.acls, rules))
        refused = await beat(node, join_request("g", "m1", "a", "ab"))
        assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        request = join_request("g", "m1", subscribed_topic_names=None, subscribed_topic_regex="a.*")
        joined = await beat(node, request)
        assert [topic.topic_id for topic in joined.assignment.topic_partitions] == [node.topic_id("a")]
