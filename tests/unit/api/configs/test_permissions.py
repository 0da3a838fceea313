"""Permissions to describe and alter the configs of each resource type."""

from pathlib import Path

import pytest

from barnabas.client.admin.acls import acl_creation
from barnabas.metadata.acls import AclBinding
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.messages.alter_configs import AlterConfigsResource as Replaced
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.wire.schema import Message
from support.acls import ALICE, AUTHORIZED, ROOT, allow, allow_cluster
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node

DESCRIBE, ALTER = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
TOPIC_FAILED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_FAILED = ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER_FAILED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

#: (type, name) -> the error without permission
RESOURCES = {
    (2, "t"): TOPIC_FAILED,
    (2, "gone"): TOPIC_FAILED,  # its existence is not revealed
    (4, "1"): CLUSTER_FAILED,
    (4, ""): CLUSTER_FAILED,
    (8, "1"): CLUSTER_FAILED,
    (16, "m"): CLUSTER_FAILED,
    (32, "g"): GROUP_FAILED,
}


async def codes(node: RunningNode, request: Message) -> list[ErrorCode]:
    """Return the error codes in ALICE's response."""
    node.connection.principal = ALICE
    answer = await node.ask(request)
    parts = answer.results if isinstance(request, DescribeConfigsRequest) else answer.responses
    return [ErrorCode(part.error_code) for part in parts]


async def permit(node: RunningNode, *bindings: AclBinding) -> None:
    node.connection.principal = ROOT
    await node.ask(CreateAclsRequest([acl_creation(binding) for binding in bindings]))


@on_loop
async def test_without_permissions_nothing_is_described_or_altered(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as node:
        await node.create(new_topic("t"))
        expected = list(RESOURCES.values())
        described = DescribeConfigsRequest([DescribeConfigsResource(*each) for each in RESOURCES])
        assert await codes(node, described) == expected
        edited = IncrementalAlterConfigsRequest([AlterConfigsResource(*each, []) for each in RESOURCES])
        assert await codes(node, edited) == expected
        replaced = AlterConfigsRequest([Replaced(*each, []) for each in RESOURCES if each[0] != 8])
        assert await codes(node, replaced) == [RESOURCES[each] for each in RESOURCES if each[0] != 8]
        listed = await node.ask(ListConfigResourcesRequest())
        assert (listed.error_code, listed.config_resources) == (CLUSTER_FAILED, [])


@on_loop
@pytest.mark.parametrize(("operation", "may_alter"), [(DESCRIBE, False), (ALTER, True)])
async def test_alter_configs_implies_describe_configs(
    tmp_path: Path, operation: AclOperation, may_alter: bool
) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as node:
        await node.create(new_topic("t"))
        bindings = [
            allow(operation),
            allow(operation, ResourceType.GROUP, "g"),
            allow_cluster(operation),
        ]
        await permit(node, *bindings)
        there = [each for each in RESOURCES if each != (2, "gone")]
        described = DescribeConfigsRequest([DescribeConfigsResource(*each) for each in there])
        assert set(await codes(node, described)) == {ErrorCode.NONE}
        edited = IncrementalAlterConfigsRequest([AlterConfigsResource(*each, []) for each in there])
        expected = [ErrorCode.NONE if may_alter else RESOURCES[each] for each in there]
        assert await codes(node, edited) == expected
        assert (await node.ask(ListConfigResourcesRequest())).error_code == ErrorCode.NONE
