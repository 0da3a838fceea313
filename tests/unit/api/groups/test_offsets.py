"""OffsetCommit, OffsetFetch and OffsetDelete on a node: versions, topic ids, permissions, missing resources."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from barnabas.coordinator.runner import ShardRunner
from barnabas.groups.shard import GroupShard
from barnabas.metadata.acls import decide_create_acls
from barnabas.wire.acls import AclBinding, AclPermission, PatternType, ResourceType
from barnabas.wire.acls import AclOperation as Op
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
)
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from support.acls import ALICE, AUTHORIZED, ROOT
from support.images import new_topic
from support.loop import on_loop, turns
from support.nodes import RunningNode, running_node
from support.offsets import Offsets, codes, commit_topics, found
from support.waiting import reached

ALLOW = AclPermission.ALLOW
UNKNOWN_ID = bytes(15) + b"\7"


async def prepare(node: RunningNode, *topics: str) -> None:
    """Create topics of two partitions, and load the coordinator of group `g`."""
    for topic in topics:
        await node.create(new_topic(topic, 2))
    await node.ask(FindCoordinatorRequest(coordinator_keys=["g"]))
    await turns()


async def commit(node: RunningNode, offsets: Offsets, version: int, **fields: Any) -> Any:
    request = OffsetCommitRequest(group_id="g", topics=commit_topics(offsets), **fields)
    if version >= 10:
        for topic in request.topics:
            known = node.broker.image.topics.get(topic.name)
            topic.topic_id = UNKNOWN_ID if known is None else known.topic_id
    return await node.ask(request, version)


async def fetch(
    node: RunningNode, indexes: dict[str, list[int]] | None, version: int, group: str = "g"
) -> Any:
    """Return the result for one group in any version: error code, (topic or its id, index) -> offset."""
    if version < 8:
        topics = (
            None
            if indexes is None
            else [OffsetFetchRequestTopic(name, each) for name, each in indexes.items()]
        )
        answer = await node.ask(OffsetFetchRequest(group_id=group, topics=topics), version)
    else:
        named = None
        if indexes is not None:
            images = node.broker.image.topics
            ids = {name: images[name].topic_id if name in images else UNKNOWN_ID for name in indexes}
            named = [OffsetFetchRequestTopics(name, ids[name], each) for name, each in indexes.items()]
        asked = OffsetFetchRequestGroup(group_id=group, topics=named)
        [answer] = (await node.ask(OffsetFetchRequest(groups=[asked]), version)).groups
    for topic in answer.topics:
        if version >= 10:
            topic.name = node.broker.image.topic_names.get(topic.topic_id, "?")
    return answer.error_code, found(answer)


@pytest.mark.parametrize("version", range(11))
def test_every_version_commits_and_fetches(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await prepare(node, "t")
            answer = await commit(node, {"t": {0: (5, 3, "note"), 1: 6}}, version)
            assert [each.error_code for each in answer.topics[0].partitions] == [0, 0]
            assert await fetch(node, {"t": [0, 1]}, version) == (0, {("t", 0): 5, ("t", 1): 6})
            if version >= 2:
                assert await fetch(node, None, version) == (0, {("t", 0): 5, ("t", 1): 6})

    scenario()


@on_loop
async def test_leader_epoch_and_metadata_are_returned_as_committed(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await prepare(node, "t")
        await commit(node, {"t": {0: (5, 3, "note"), 1: 6}}, 9)
        request = OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic("t", [0, 1])])
        [topic] = (await node.ask(request, 7)).topics
        assert [(each.committed_leader_epoch, each.metadata) for each in topic.partitions] == [
            (3, "note"),
            (-1, ""),
        ]


@pytest.mark.parametrize("version", range(11))
def test_missing_partitions_are_errors_and_others_succeed(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await prepare(node, "t")
            answer = await commit(node, {"missing": {0: 1}, "t": {0: 5, 2: 6, -1: 7}}, version)
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            first = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else unknown
            assert [
                (each.partition_index, each.error_code)
                for topic in answer.topics
                for each in topic.partitions
            ] == [(0, first), (2, unknown), (-1, unknown), (0, 0)]
            assert len(answer.topics) == 2

    scenario()


@on_loop
async def test_a_commit_without_valid_partitions_creates_no_group(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await prepare(node)
        assert codes(await commit(node, {"missing": {0: 1}}, 9)) == {("missing", 0): 3}
        assert node.broker.groups.runner("g").shard.groups == {}


@pytest.mark.parametrize("version", range(11))
def test_partitions_without_offset_are_returned_in_each_versions_form(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await prepare(node, "t")
            code, answers = await fetch(node, {"t": [0], "missing": [1]}, version)
            assert code == 0
            assert answers["t", 0] == ("error 3" if version == 0 else -1)
            if version >= 10:
                assert answers["?", 1] == f"error {ErrorCode.UNKNOWN_TOPIC_ID.value}"
            else:
                assert answers["missing", 1] == ("error 3" if version == 0 else -1)

    scenario()


@pytest.mark.parametrize("version", [0, 1, 2, 7, 8, 10])
def test_a_group_error_is_in_each_versions_field(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t"))  # no coordinator has been requested yet
            code, answers = await fetch(node, {"t": [0]}, version)
            missing = ErrorCode.NOT_COORDINATOR.value
            expected = (missing, {}) if version >= 2 else (0, {("t", 0): f"error {missing}"})
            assert (code if version >= 2 else 0, answers) == expected

    scenario()


@on_loop
async def test_many_groups_are_fetched_at_once_with_their_own_results(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await prepare(node, "t")
        await commit(node, {"t": {0: 5}}, 9)
        groups = [
            OffsetFetchRequestGroup("g", topics=None),
            OffsetFetchRequestGroup("nobody", topics=[OffsetFetchRequestTopics("t", partition_indexes=[0])]),
        ]
        answers = (await node.ask(OffsetFetchRequest(groups=groups), 9)).groups
        assert [(each.group_id, found(each)) for each in answers] == [
            ("g", {("t", 0): 5}),
            ("nobody", {("t", 0): -1}),
        ]


@on_loop
async def test_topics_without_describe_permission_are_errors_or_omitted(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as node:
        await node.create(new_topic("mine", 2), new_topic("other", 2))
        node.connection.principal = ROOT
        await prepare(node)
        await commit(node, {"mine": {0: 5}, "other": {0: 6}}, 9)
        node.connection.principal = ALICE
        group = AclBinding(ResourceType.GROUP, "g", PatternType.LITERAL, ALICE, "*", Op.DESCRIBE, ALLOW)
        topic = AclBinding(ResourceType.TOPIC, "mine", PatternType.LITERAL, ALICE, "*", Op.READ, ALLOW)
        await node.broker.metadata.write(lambda image: decide_create_acls(image.acls, [group, topic]))
        for version in (7, 9, 10):
            code, answers = await fetch(node, {"mine": [0], "other": [0], "missing": [0]}, version)
            refused = f"error {ErrorCode.TOPIC_AUTHORIZATION_FAILED.value}"
            unknown = ("?", 0), f"error {ErrorCode.UNKNOWN_TOPIC_ID.value}"
            last = unknown if version >= 10 else (("missing", 0), refused)
            assert (code, answers) == (0, {("mine", 0): 5, ("other", 0): refused, last[0]: last[1]})
            assert await fetch(node, None, version) == (0, {("mine", 0): 5})


@on_loop
async def test_offsets_survive_a_restart(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await prepare(node, "t")
        await commit(node, {"t": {0: 5, 1: 6}}, 9)
        await commit(node, {"t": {0: 7}}, 10)
        store = node.store
    async with running_node(tmp_path, store) as node:
        await turns(50)
        assert await fetch(node, None, 9) == (0, {("t", 0): 7, ("t", 1): 6})


@on_loop
async def test_offsets_are_deleted_on_request_and_with_their_topic(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await prepare(node, "t", "u")
        await commit(node, {"t": {0: 5, 1: 6}, "u": {0: 7}}, 9)
        asked = [OffsetDeleteRequestPartition(0), OffsetDeleteRequestPartition(9)]
        topics = [OffsetDeleteRequestTopic("t", asked), OffsetDeleteRequestTopic("missing", asked[:1])]
        answer = await node.ask(OffsetDeleteRequest("g", topics))
        assert (answer.error_code, codes(answer)) == (0, {("t", 0): 0, ("t", 9): 3, ("missing", 0): 3})
        assert await fetch(node, None, 9) == (0, {("t", 1): 6, ("u", 0): 7})
        deleted = await node.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="u")], timeout_ms=5000))
        assert deleted.responses[0].error_code == 0
        await turns()
        assert await fetch(node, None, 9) == (0, {("t", 1): 6})


@pytest.mark.parametrize(
    ("group_id", "code"), [("", ErrorCode.INVALID_GROUP_ID), ("nobody", ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_offsets_of_a_missing_group_cannot_be_deleted(tmp_path: Path, group_id: str, code: ErrorCode) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await prepare(node, "t")
            topics = [OffsetDeleteRequestTopic("t", [OffsetDeleteRequestPartition(0)])]
            answer = await node.ask(OffsetDeleteRequest(group_id, topics))
            assert (answer.error_code, answer.topics) == (code, [])

    scenario()


@on_loop
async def test_a_topic_that_is_deleted_while_its_groups_are_loaded_leaves_no_offsets_to_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_node(tmp_path) as node:
        await prepare(node, "t")
        await commit(node, {"t": {0: 5}}, 9)
        groups = node.broker.groups
        loads = asyncio.Event()
        load = ShardRunner.load

        async def load_late(runner: ShardRunner[GroupShard]) -> None:
            await loads.wait()
            await load(runner)

        monkeypatch.setattr(ShardRunner, "load", load_late)
        for index in tuple(groups._runners):
            groups._runners.pop(index).close("a test")
        groups.load(node.broker.image)
        await node.ask(DeleteTopicsRequest([DeleteTopicState("t")], timeout_ms=10_000))
        loads.set()
        await node.create(new_topic("t", 2))
        await reached(lambda: not groups._loading)
        assert await fetch(node, {"t": [0]}, 7) == (ErrorCode.NONE, {("t", 0): -1})
