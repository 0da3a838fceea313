"""Responses on all topics include the topics of the audit and of the security log for Barnabas's own clients only."""

from pathlib import Path

import pytest

from barnabas.api.context import OWN_SOFTWARE
from barnabas.base.topic_names import AUDIT_TOPIC, SECURITY_TOPIC
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from support.images import new_topic
from support.loop import on_loop
from support.members import find_coordinator
from support.nodes import RunningNode, running_node


async def in_metadata(node: RunningNode, *names: str) -> set[str]:
    topics = [MetadataRequestTopic(name=name) for name in names] or None
    answer = await node.ask(MetadataRequest(topics=topics))
    return {topic.name for topic in answer.topics if not topic.error_code}


async def in_pages(node: RunningNode, *names: str) -> set[str]:
    request = DescribeTopicPartitionsRequest([TopicRequest(name) for name in names], 100)
    return {topic.name for topic in (await node.ask(request)).topics if not topic.error_code}


async def in_log_dirs(node: RunningNode, *names: str) -> set[str]:
    topics = [DescribableLogDirTopic(name, [0]) for name in names] or None
    answer = await node.ask(DescribeLogDirsRequest(topics))
    return {topic.name for directory in answer.results for topic in directory.topics}


async def in_config_resources(node: RunningNode) -> set[str]:
    answer = await node.ask(ListConfigResourcesRequest([2]), 1)
    return {resource.resource_name for resource in answer.config_resources}


@pytest.mark.parametrize(
    ("software", "listed"),
    [("apache-kafka-java", {"orders"}), (OWN_SOFTWARE, {"orders", AUDIT_TOPIC, SECURITY_TOPIC})],
)
def test_all_topics_are_those_that_the_client_supports(
    tmp_path: Path, software: str, listed: set[str]
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("orders"), new_topic(AUDIT_TOPIC), new_topic(SECURITY_TOPIC))
            for each in ("another", software):  # a cached response must not serve the other client
                node.connection.client_software_name = each
                await in_metadata(node)
            assert await in_metadata(node) == listed
            assert await in_pages(node) == listed
            assert await in_log_dirs(node) == listed
            assert await in_config_resources(node) == listed

    scenario()


@on_loop
async def test_a_request_that_names_the_audit_topic_finds_it(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic(AUDIT_TOPIC))
        for ask in (in_metadata, in_pages, in_log_dirs):
            assert await ask(node, AUDIT_TOPIC) == {AUDIT_TOPIC}


@on_loop
async def test_a_regex_does_not_match_the_audit_topic(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("orders"), new_topic(AUDIT_TOPIC))
        await find_coordinator(node)
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            rebalance_timeout_ms=60_000,
            subscribed_topic_regex=f"orders|{AUDIT_TOPIC}",
            topic_partitions=[],
        )
        answer = await node.ask(request)
        assert [topic.topic_id for topic in answer.assignment.topic_partitions] == [node.topic_id("orders")]
