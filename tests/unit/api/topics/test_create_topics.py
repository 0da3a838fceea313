"""Responses of CreateTopics; the decision has its own tests."""

from pathlib import Path

import pytest

from barnabas.client.admin.acls import acl_creation
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from support.acls import ALICE, AUTHORIZED, ROOT, allow
from support.loop import on_loop
from support.nodes import running_node


def wanted(name: str, count: int = 2, factor: int = 1, **configs: str | None) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=count,
        replication_factor=factor,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )


@pytest.mark.parametrize("version", range(2, 8))
def test_a_created_topic_exists_with_open_partitions_when_the_response_is_sent(
    tmp_path: Path, version: int
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            request = CreateTopicsRequest(topics=[wanted("t", retention_ms="77")])
            [topic] = (await node.ask(request, version)).topics
            assert (topic.error_code, topic.error_message) == (0, None)
            assert node.partition("t", 1).log.config.retention_ms == 77
            if version >= 5:
                assert (topic.num_partitions, topic.replication_factor) == (2, 1)
                shown = {config.name: (config.value, config.config_source) for config in topic.configs}
                assert shown["retention.ms"] == ("77", 1)
                assert shown["segment.ms"] == ("604800000", 5)
            if version >= 7:
                assert topic.topic_id == node.topic_id("t")

    scenario()


@on_loop
async def test_of_the_configs_that_kafka_does_not_have_only_those_that_were_set_are_shown(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        topics = [wanted("plain"), wanted("table", barnabas_table_format="delta")]
        response = await node.ask(CreateTopicsRequest(topics=topics), 7)
        shown = [
            [each.name for each in topic.configs if "barnabas" in each.name] for topic in response.topics
        ]
        assert shown == [[], ["barnabas.table.format"]]


@on_loop
async def test_each_topic_has_its_own_error(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        topics = [
            wanted("good"),
            wanted("many", factor=3),
            wanted("odd", retention_ms="soon"),
            wanted("strange", no_such_key="1"),
            wanted("none", retention_ms=None),
        ]
        answers = (await node.ask(CreateTopicsRequest(topics=topics))).topics
        assert [(answer.name, ErrorCode(answer.error_code).name) for answer in answers] == [
            ("good", "NONE"),
            ("many", "INVALID_REPLICATION_FACTOR"),
            ("odd", "INVALID_CONFIG"),
            ("strange", "INVALID_CONFIG"),
            ("none", "INVALID_CONFIG"),
        ]
        assert "retention.ms" in answers[2].error_message
        assert "no.such.key" in answers[3].error_message
        assert set(node.broker.image.topics) == {"good"}


@on_loop
async def test_manual_assignments_are_used(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        topic = CreatableTopic(
            name="t",
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreatableReplicaAssignment(partition_index=index, broker_ids=[1]) for index in (1, 0)
            ],
        )
        [answer] = (await node.ask(CreateTopicsRequest(topics=[topic]))).topics
        assert (answer.error_code, answer.num_partitions) == (0, 2)


@on_loop
async def test_validate_only_returns_the_result_and_creates_nothing(tmp_path: Path) -> None:
    async with running_node(tmp_path, num_partitions="4") as node:
        revision = node.broker.image.revision
        request = CreateTopicsRequest(topics=[wanted("t", -1, -1)], validate_only=True)
        [answer] = (await node.ask(request)).topics
        assert (answer.error_code, answer.num_partitions) == (0, 4)
        assert node.broker.image.revision == revision
        assert not list(tmp_path.glob("t-*"))


@on_loop
async def test_without_describe_configs_the_configs_are_replaced_by_an_error(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as node:
        node.connection.principal = ROOT
        acl = acl_creation(allow(AclOperation.CREATE))
        await node.ask(CreateAclsRequest(creations=[acl]))
        node.connection.principal = ALICE
        [answer] = (await node.ask(CreateTopicsRequest(topics=[wanted("t")]))).topics
        assert answer.error_code == 0
        assert answer.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert (answer.num_partitions, answer.replication_factor, answer.configs) == (-1, -1, [])
        assert node.partition("t", 1).is_leader
