import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.api.groups import delete_groups
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.schema import Message
from support.consumer_groups import join_request
from support.images import new_topic
from support.loop import on_loop, turns
from support.members import AT_ONCE, classic_join_request, find_coordinator, join_and_sync
from support.nodes import RunningNode, running_node
from support.offsets import commit_topics


@pytest.mark.parametrize("version", range(3))
def test_a_group_without_members_is_deleted(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, **AT_ONCE) as node:
            await find_coordinator(node)
            member = await join_and_sync(node)
            await join_and_sync(node, "other")
            codes = []
            for _ in range(3):
                deleted = await node.ask(DeleteGroupsRequest(groups_names=["g", "g", "other"]), version)
                codes.append([(result.group_id, result.error_code) for result in deleted.results])
                await node.ask(member.leave())
            in_use = ("other", ErrorCode.NON_EMPTY_GROUP)
            assert codes == [
                [("g", ErrorCode.NON_EMPTY_GROUP), in_use],
                [("g", ErrorCode.NONE), in_use],
                [("g", ErrorCode.GROUP_ID_NOT_FOUND), in_use],
            ]
            assert [group.group_id for group in (await node.ask(ListGroupsRequest())).groups] == ["other"]

    scenario()


def classic_join() -> Message:
    return classic_join_request("g", group_instance_id="instance")


def consumer_join() -> ConsumerGroupHeartbeatRequest:
    return join_request("g", "m", "t")


@pytest.mark.parametrize("join", [classic_join, consumer_join])
@pytest.mark.parametrize("slice_max", [1, delete_groups.SLICE_PARTITIONS_MAX])
def test_joins_to_a_group_whose_offsets_are_being_deleted_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slice_max: int, join: Callable[[], Message]
) -> None:
    monkeypatch.setattr(delete_groups, "SLICE_PARTITIONS_MAX", slice_max)

    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, **AT_ONCE) as node:
            await node.create(new_topic("t", 3))
            await find_coordinator(node)
            offsets = commit_topics({"t": {0: 1, 1: 2, 2: 3}})
            await node.ask(OffsetCommitRequest(group_id="g", topics=offsets), 9)
            stores = hold_storing(node)
            deleting = asyncio.ensure_future(node.ask(DeleteGroupsRequest(groups_names=["g"])))
            await turns()
            joining = asyncio.ensure_future(node.ask(join()))
            await turns()
            stores.set_result(None)
            assert (await deleting).results[0].error_code == ErrorCode.NONE
            assert (await joining).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            assert node.broker.groups.runner("g").shard.offsets.statistics()["offsets_count"] == 0
            assert (await node.ask(join())).error_code == ErrorCode.NONE

    scenario()


def hold_storing(node: RunningNode) -> asyncio.Future[None]:
    """Let the group coordinator's log store nothing more until the future is done."""
    log = node.broker.groups.runner("g").log
    stores: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    log.stored = lambda: None if stores.done() else asyncio.shield(stores)  # type: ignore[method-assign]
    return stores


def test_a_deletion_that_fails_lets_members_join_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, **AT_ONCE) as node:
            await find_coordinator(node)
            member = await join_and_sync(node)
            response = await node.ask(DeleteGroupsRequest(groups_names=["g"]))
            assert response.results[0].error_code == ErrorCode.NON_EMPTY_GROUP
            await node.ask(member.leave())
            await join_and_sync(node)

    scenario()
