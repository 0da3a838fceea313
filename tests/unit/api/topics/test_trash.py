"""DescribeTrash, UndeleteTopic and PurgeTopics, as requests."""

from pathlib import Path
from typing import Any

from barnabas.metadata.acls import decide_create_acls
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.barnabas_messages.describe_trash import DescribeTrashRequest
from barnabas.wire.barnabas_messages.purge_topics import PurgeTopicsRequest, TopicToPurge
from barnabas.wire.barnabas_messages.undelete_topic import UndeleteTopicRequest
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from support.acls import ALICE, AUTHORIZED, ROOT
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node


async def delete(running: RunningNode, *names: str) -> None:
    topics = [DeleteTopicState(name=name) for name in names]
    response = await running.ask(DeleteTopicsRequest(topics=topics, timeout_ms=1000))
    assert [each.error_code for each in response.responses] == [0] * len(names)


@on_loop
async def test_deleted_topics_are_ordered_newest_first(tmp_path: Path) -> None:
    async with running_node(tmp_path, barnabas_trash_retention_ms="5000") as running:
        await running.create(new_topic("first", 3), new_topic("second"))
        await delete(running, "first")
        running.clock.advance(10)
        await delete(running, "second")
        topics = (await running.ask(DescribeTrashRequest())).topics
    assert [(each.name, each.partition_count) for each in topics] == [("second", 1), ("first", 3)]
    assert all(each.expires_ms - each.deleted_ms == 5000 for each in topics)
    assert all(each.deleted_by == "User:ANONYMOUS" and each.size_bytes > 0 for each in topics)


@on_loop
async def test_only_describable_topics_in_the_trash_are_listed(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as running:
        running.connection.principal = ROOT
        await running.create(new_topic("mine"), new_topic("other"))
        await delete(running, "mine", "other")
        pattern = (PatternType.LITERAL, ALICE, "*", AclOperation.DESCRIBE, AclPermission.ALLOW)
        acl = AclBinding(ResourceType.TOPIC, "mine", *pattern)
        await running.broker.metadata.write(lambda image: decide_create_acls(image.acls, [acl]))
        running.connection.principal = ALICE
        assert [each.name for each in (await running.ask(DescribeTrashRequest())).topics] == ["mine"]


@on_loop
async def test_an_undeleted_topic_is_open_when_the_response_is_sent(tmp_path: Path) -> None:
    async with running_node(tmp_path) as running:
        await running.create(new_topic("orders", 2))
        topic_id = running.topic_id("orders")
        await delete(running, "orders")
        response = await running.ask(UndeleteTopicRequest(name="orders", new_name="again"))
        assert (response.error_code, response.name, response.topic_id) == (0, "again", topic_id)
        assert running.partition("again", 1).log.topic_id == topic_id


@on_loop
async def test_missing_topics_have_their_own_errors(tmp_path: Path) -> None:
    async with running_node(tmp_path) as running:
        await running.create(new_topic("orders"))
        await delete(running, "orders")
        nope: Any = await running.ask(UndeleteTopicRequest(name="nope"))
        assert nope.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        purge = PurgeTopicsRequest(topics=[TopicToPurge(name="nope"), TopicToPurge(name="orders")])
        results = (await running.ask(purge)).results
    assert [(each.name, each.error_code) for each in results] == [
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", ErrorCode.NONE),
    ]


@on_loop
async def test_with_topic_deletion_disabled_nothing_is_purged(tmp_path: Path) -> None:
    async with running_node(tmp_path, delete_topic_enable="false") as running:
        [result] = (await running.ask(PurgeTopicsRequest(topics=[TopicToPurge(name="orders")]))).results
    assert result.error_code == ErrorCode.TOPIC_DELETION_DISABLED
