"""DescribeAclDecisions through a node."""

from pathlib import Path

from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.barnabas_messages.describe_acl_decisions import (
    DescribeAclDecisionsRequest,
    DescribeAclDecisionsResponse,
    RecordedAclDecision,
)
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from support.acls import ALICE, AUTHORIZED, ROOT
from support.loop import on_loop
from support.nodes import RunningNode, running_node


async def described(running: RunningNode) -> DescribeAclDecisionsResponse:
    running.connection.principal = ROOT
    response: DescribeAclDecisionsResponse = await running.ask(DescribeAclDecisionsRequest())
    assert response.error_code == ErrorCode.NONE
    return response


async def of_alice(running: RunningNode) -> list[RecordedAclDecision]:
    return [each for each in (await described(running)).decisions if each.principal == ALICE]


def test_a_broker_describes_its_decisions(tmp_path: Path) -> None:
    @on_loop
    async def test() -> None:
        async with running_node(tmp_path, **AUTHORIZED) as running:
            running.connection.principal = ALICE
            await running.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]))
            now_ms = running.broker.clock.wall_ms()
            [recorded] = await of_alice(running)
            host = running.connection.client_host
            about = AclOperation.DESCRIBE, ResourceType.TOPIC, "t"
            assert recorded == RecordedAclDecision(ALICE, host, *about, is_allowed=False, last_used=now_ms)
            response = await described(running)
            assert (response.left_out_count, response.super_users) == (0, [ROOT])
            assert (response.allows_if_no_acl, response.since <= now_ms) == (False, True)

    test()


def test_operations_that_a_response_lists_are_not_recorded(tmp_path: Path) -> None:
    @on_loop
    async def test() -> None:
        settings = {**AUTHORIZED, "allow_everyone_if_no_acl_found": "true"}
        async with running_node(tmp_path, **settings) as running:
            running.connection.principal = ALICE
            request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")])
            await running.ask(request)
            assert [each.operation for each in await of_alice(running)] == [AclOperation.DESCRIBE]

    test()


def test_without_an_authorizer_there_are_no_decisions(tmp_path: Path) -> None:
    @on_loop
    async def test() -> None:
        async with running_node(tmp_path) as running:
            response = await running.ask(DescribeAclDecisionsRequest())
            assert response.error_code == ErrorCode.SECURITY_DISABLED

    test()
