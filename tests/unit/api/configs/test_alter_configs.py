from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8


async def replace(
    node: RunningNode,
    kind: int,
    name: str,
    *configs: tuple[str, str | None],
    version: int | None = None,
    validate_only: bool = False,
) -> ErrorCode:
    resource = AlterConfigsResource(kind, name, [AlterableConfig(*config) for config in configs])
    request = AlterConfigsRequest(resources=[resource], validate_only=validate_only)
    [response] = (await node.ask(request, version)).responses
    assert (response.resource_type, response.resource_name) == (kind, name)
    return ErrorCode(response.error_code)


@on_loop
@pytest.mark.parametrize("version", [0, 1, 2])
async def test_all_configs_are_replaced(tmp_path: Path, version: int) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", configs={"segment.ms": "7", "retention.ms": "8"}))
        assert await replace(node, TOPIC, "t", ("retention.ms", "9"), version=version) is ErrorCode.NONE
        assert dict(node.broker.image.topic_configs["t"]) == {"retention.ms": "9"}
        assert await replace(node, TOPIC, "t", version=version) is ErrorCode.NONE
        assert "t" not in node.broker.image.topic_configs


@on_loop
async def test_invalid_configs_are_rejected_and_nothing_changes(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", configs={"segment.ms": "7"}))
        before = node.broker.image
        twice = (("retention.ms", "1"), ("retention.ms", "1"))
        assert await replace(node, TOPIC, "t", *twice) is ErrorCode.INVALID_REQUEST
        assert await replace(node, TOPIC, "t", ("retention.ms", None)) is ErrorCode.INVALID_REQUEST
        assert await replace(node, TOPIC, "t", ("retention.ms", "x")) is ErrorCode.INVALID_CONFIG
        assert await replace(node, BROKER_LOGGER, "1", ("root", "INFO")) is ErrorCode.INVALID_REQUEST
        assert await replace(node, TOPIC, "t", ("segment.ms", "9"), validate_only=True) is ErrorCode.NONE
        assert node.broker.image is before
