"""The audit topic: topic permissions are not sufficient to change, delete or truncate it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.topic_names import AUDIT_TOPIC
from barnabas.metadata.acls import decide_create_acls
from barnabas.metadata.internal_topics import internal_topic
from barnabas.wire.acls import CLUSTER_NAME, AclBinding, AclOperation, ResourceType
from barnabas.wire.barnabas_messages.purge_topics import PurgeTopicsRequest, TopicToPurge
from barnabas.wire.barnabas_messages.rollback_resource import RollbackResourceRequest
from barnabas.wire.barnabas_messages.undelete_topic import UndeleteTopicRequest
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.alter_configs import AlterableConfig as ReplacedConfig
from barnabas.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.incremental_alter_configs import AlterableConfig, IncrementalAlterConfigsRequest
from barnabas.wire.messages.incremental_alter_configs import AlterConfigsResource as ChangedResource
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.schema import Message
from support.acls import ALICE, AUTHORIZED, ROOT, allow, allow_cluster
from support.batches import batch
from support.loop import on_loop
from support.nodes import RunningNode, running_node

ALL_TOPICS = allow(AclOperation.ALL, name="*")
#: Topic permission -> the cluster permission that the audit topic needs.
BY_CLUSTER = [allow_cluster(AclOperation.CREATE), allow_cluster(AclOperation.DELETE)]
ALTER_CLUSTER = allow_cluster(AclOperation.ALTER)
DENIED, OK = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.NONE
TOPIC_RESOURCE = 2


def set_config(key: str, value: str) -> IncrementalAlterConfigsRequest:
    change = AlterableConfig(name=key, config_operation=0, value=value)
    return IncrementalAlterConfigsRequest([ChangedResource(TOPIC_RESOURCE, AUDIT_TOPIC, [change])])


def produce_to_it() -> ProduceRequest:
    data = TopicProduceData(name=AUDIT_TOPIC, partition_data=[PartitionProduceData(0, batch(b"forged"))])
    return ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data])


#: request, a function that finds its error code, and the error with ALTER on the cluster
CHANGES: dict[str, tuple[Message, Callable[[Any], int], ErrorCode]] = {
    "delete": (
        DeleteTopicsRequest(topics=[DeleteTopicState(name=AUDIT_TOPIC)], timeout_ms=1000),
        lambda answer: answer.responses[0].error_code,
        OK,
    ),
    "grow": (
        CreatePartitionsRequest([CreatePartitionsTopic(AUDIT_TOPIC, count=2, assignments=None)], timeout_ms=1000),
        lambda answer: answer.results[0].error_code,
        OK,
    ),
    **{
        f"{key}={value}": (set_config(key, value), lambda answer: answer.responses[0].error_code, OK)
        for key, value in (
            ("retention.ms", "1"),
            ("retention.bytes", "1"),
            ("cleanup.policy", "compact"),
            ("segment.ms", "1"),
        )
    },
    "replace configs": (
        AlterConfigsRequest([AlterConfigsResource(TOPIC_RESOURCE, AUDIT_TOPIC, [ReplacedConfig("retention.ms", "1")])]),
        lambda answer: answer.responses[0].error_code,
        OK,
    ),
    "delete records": (
        DeleteRecordsRequest([DeleteRecordsTopic(AUDIT_TOPIC, [DeleteRecordsPartition(0, -1)])], 1000),
        lambda answer: answer.topics[0].partitions[0].error_code,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ),
    "produce": (
        produce_to_it(),
        lambda answer: answer.responses[0].partition_responses[0].error_code,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ),
    "roll back": (
        RollbackResourceRequest(f"topic/{AUDIT_TOPIC}", 1),
        lambda answer: answer.error_code,
        ErrorCode.INVALID_REQUEST,
    ),
}  # fmt: skip


async def make_audit_topic(running: RunningNode) -> None:
    await running.create(internal_topic(AUDIT_TOPIC, running.broker.config, 1))


async def give(running: RunningNode, *bindings: AclBinding) -> None:
    await running.broker.metadata.write(lambda image: decide_create_acls(image.acls, bindings))


async def ask_as_alice(running: RunningNode, request: Message, version: int | None = None) -> Any:
    running.connection.principal = ALICE
    answer = await running.ask(request, version)
    running.connection.principal = ROOT
    return answer


@pytest.mark.parametrize("change", CHANGES)
def test_topic_permissions_are_not_sufficient_to_change_the_audit_topic(tmp_path: Path, change: str) -> None:
    request, code_of, _ = CHANGES[change]
    version = 12 if change == "produce" else None

    @on_loop
    async def check() -> None:
        async with running_node(tmp_path, **AUTHORIZED) as running:
            await make_audit_topic(running)
            await give(running, ALL_TOPICS, *BY_CLUSTER)
            assert code_of(await ask_as_alice(running, request, version)) == DENIED

    check()


@pytest.mark.parametrize("change", CHANGES)
def test_with_alter_on_the_cluster_the_usual_rules_apply(tmp_path: Path, change: str) -> None:
    request, code_of, expected = CHANGES[change]
    version = 12 if change == "produce" else None

    @on_loop
    async def check() -> None:
        async with running_node(tmp_path, **AUTHORIZED) as running:
            await make_audit_topic(running)
            await give(running, ALL_TOPICS, ALTER_CLUSTER)
            assert code_of(await ask_as_alice(running, request, version)) == expected

    check()


@on_loop
async def test_alter_on_the_cluster_alone_is_not_sufficient(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as running:
        await make_audit_topic(running)
        await give(running, ALTER_CLUSTER)
        request, code_of, _ = CHANGES["retention.ms=1"]
        assert code_of(await ask_as_alice(running, request)) == DENIED


@on_loop
async def test_the_audit_topic_in_the_trash_can_be_neither_purged_nor_undeleted(tmp_path: Path) -> None:
    async with running_node(tmp_path, barnabas_trash_retention_ms="5000", **AUTHORIZED) as running:
        running.connection.principal = ROOT
        await make_audit_topic(running)
        request, code_of, _ = CHANGES["delete"]
        assert code_of(await running.ask(request)) == OK
        await give(running, ALL_TOPICS, *BY_CLUSTER)
        purge = PurgeTopicsRequest(topics=[TopicToPurge(name=AUDIT_TOPIC)])
        [purged] = (await ask_as_alice(running, purge)).results
        undeleted = await ask_as_alice(running, UndeleteTopicRequest(name=AUDIT_TOPIC, new_name="mine"))
        assert (purged.error_code, undeleted.error_code) == (DENIED, DENIED)
        await give(running, ALTER_CLUSTER)
        [purged] = (await ask_as_alice(running, purge)).results
        assert purged.error_code == OK


@on_loop
async def test_creating_the_audit_topic_needs_alter_on_the_cluster(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as running:
        await give(running, ALL_TOPICS, *BY_CLUSTER)
        topic = CreatableTopic(name=AUDIT_TOPIC, num_partitions=1, replication_factor=1)
        [created] = (await ask_as_alice(running, CreateTopicsRequest([topic]))).topics
        assert created.error_code == DENIED
        assert "ALTER on the cluster" in created.error_message
        named = MetadataRequest([MetadataRequestTopic(name=AUDIT_TOPIC)], allow_auto_topic_creation=True)
        assert (await ask_as_alice(running, named)).topics[0].error_code == DENIED
        assert AUDIT_TOPIC not in running.broker.image.topics


@on_loop
async def test_reading_the_audit_needs_only_the_topic_permission(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as running:
        await give(running, allow(AclOperation.READ, name=AUDIT_TOPIC))
        authorizer = running.broker.authorizer
        assert authorizer is not None
        assert authorizer.known(ALICE, "h", AclOperation.READ, ResourceType.TOPIC, AUDIT_TOPIC)
        assert not authorizer.known(ALICE, "h", AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
