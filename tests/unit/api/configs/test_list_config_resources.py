from pathlib import Path

from barnabas.metadata.configs import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


async def listed(node: RunningNode, *types: int, version: int = 1) -> list[tuple[int, str]]:
    response = await node.ask(ListConfigResourcesRequest(resource_types=list(types)), version)
    assert response.error_code == ErrorCode.NONE
    return [(each.resource_type, each.resource_name) for each in response.config_resources]


async def configure(node: RunningNode) -> None:
    await node.create(new_topic("t"))
    changes = (
        GROUP_CONFIGS.put("g", {"consumer.session.timeout.ms": "46000"}),
        CLIENT_METRICS_CONFIGS.put("m", {"interval.ms": "1000"}),
    )
    await node.broker.metadata.write(lambda image: Decision(None, changes))


@on_loop
async def test_resources_are_listed_by_type_or_all(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await configure(node)
        every = [(TOPIC, "t"), (BROKER, "1"), (BROKER_LOGGER, "1"), (CLIENT_METRICS, "m"), (GROUP, "g")]
        assert await listed(node) == every
        assert await listed(node, GROUP, TOPIC, GROUP) == [(GROUP, "g"), (TOPIC, "t")]


@on_loop
async def test_version_0_lists_client_metrics_only(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await configure(node)
        assert await listed(node, version=0) == [(CLIENT_METRICS, "m")]


@on_loop
async def test_an_unknown_type_is_not_supported(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        response = await node.ask(ListConfigResourcesRequest(resource_types=[TOPIC, 77]))
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert response.config_resources == []
