from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.acls import decide_create_acls
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.wire.acls import CLUSTER_NAME, AclBinding, AclOperation, ResourceType
from barnabas.wire.messages.list_groups import ListGroupsRequest
from support.acls import ALICE, AUTHORIZED, ROOT, allow
from support.loop import on_loop
from support.members import AT_ONCE, find_coordinator, join, join_and_sync
from support.nodes import RunningNode, running_node


async def listed(node: RunningNode, states: list[str], types: list[str], version: int = 5) -> list[str]:
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    answer = await node.ask(request, version)
    assert answer.error_code == 0
    return sorted(group.group_id for group in answer.groups)


@on_loop
async def test_groups_are_filtered_by_state_and_type_ignoring_case(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AT_ONCE) as node:
        await find_coordinator(node)
        await join_and_sync(node, "settled")
        await join(node, "joining")
        assert await listed(node, [], []) == ["joining", "settled"]
        assert await listed(node, ["stable"], []) == ["settled"]
        assert await listed(node, [" Stable ", "CompletingRebalance"], ["CLASSIC"]) == ["joining", "settled"]
        assert await listed(node, ["Empty"], []) == []
        assert await listed(node, [], ["consumer"]) == []
        assert await listed(node, ["no such state"], ["no such type"]) == []


@pytest.mark.parametrize("version", range(6))
def test_newer_versions_return_states_and_types(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, **AT_ONCE) as node:
            await find_coordinator(node)
            await join_and_sync(node)
            [group] = (await node.ask(ListGroupsRequest(), version)).groups
            assert (group.group_id, group.protocol_type) == ("g", "consumer")
            assert group.group_state == ("Stable" if version >= 4 else "")
            assert group.group_type == ("classic" if version >= 5 else "")

    scenario()


@on_loop
async def test_without_the_offsets_topic_no_groups_are_listed(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        assert await listed(node, [], []) == []


@on_loop
async def test_without_describe_on_the_cluster_only_describable_groups_are_listed(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED, **AT_ONCE) as node:
        node.connection.principal = ROOT
        await find_coordinator(node)
        await join_and_sync(node, "mine")
        await join_and_sync(node, "other")
        node.connection.principal = ALICE
        assert await listed(node, [], []) == []
        for binding, seen in (
            (allow(AclOperation.READ, ResourceType.GROUP, "mine"), ["mine"]),
            (allow(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME), ["mine", "other"]),
        ):
            await node.broker.metadata.write(partial(_add, binding))
            assert await listed(node, [], []) == seen


def _add(binding: AclBinding, image: MetadataImage) -> Decision[Any]:
    return decide_create_acls(image.acls, [binding])
