from pathlib import Path

import pytest

from barnabas.metadata.configs import CLIENT_METRICS_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.features import FINALIZED_FEATURES
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from support.loop import on_loop
from support.nodes import RunningNode, running_node


@pytest.mark.parametrize("name", ["", "-lib", "lib-", "a lib", "lib/1", "ünicode"])
@pytest.mark.parametrize("version", [0, 2, 3, 4])
def test_invalid_client_software_is_rejected_by_versions_that_have_it(
    tmp_path: Path, name: str, version: int
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            request = ApiVersionsRequest(client_software_name=name, client_software_version="1.0")
            answer = await node.ask(request, version)
            assert answer.error_code == (ErrorCode.INVALID_REQUEST if version >= 3 else ErrorCode.NONE)
            assert node.connection.client_software_name == "unknown"

    scenario()


@pytest.mark.parametrize("word", ["a", "apache-kafka-java", "2.8.1-rc.1", "0"])
def test_the_clients_software_is_stored(tmp_path: Path, word: str) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            request = ApiVersionsRequest(client_software_name=word, client_software_version=word)
            assert (await node.ask(request)).error_code == 0
            assert node.connection.client_software_name == node.connection.client_software_version == word

    scenario()


CLIENT = ApiVersionsRequest(client_software_name="a", client_software_version="1")


@pytest.mark.parametrize("version", range(5))
def test_cluster_features_are_returned_since_version_3(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            answer = await node.ask(CLIENT, version)
            supported = {
                each.name: (each.min_version, each.max_version) for each in answer.supported_features
            }
            finalized = {each.name: each.max_version_level for each in answer.finalized_features}
            if version < 3:
                assert (supported, finalized, answer.finalized_features_epoch) == ({}, {}, -1)
                return
            assert supported["metadata.version"] == (7, 30)
            assert finalized == dict(node.broker.image.finalized_features)
            assert finalized["metadata.version"] == 30
            assert answer.finalized_features_epoch == node.broker.image.revision

    scenario()


@pytest.mark.parametrize(("version", "is_returned"), [(3, False), (4, True)])
def test_disabled_features_are_returned_to_versions_that_support_level_0(
    tmp_path: Path, version: int, is_returned: bool
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            node.broker.apis = {**node.broker.apis, **dict.fromkeys((24, 25, 26, 28), node.broker.apis[3])}
            put = FINALIZED_FEATURES.put("transaction.version", 2)
            await node.broker.metadata.write(lambda image: Decision(None, (put,)))
            answer = await node.ask(CLIENT, version)
            supported = {each.name for each in answer.supported_features}
            assert ("transaction.version" in supported) == is_returned
            assert "transaction.version" in {each.name for each in answer.finalized_features}

    scenario()


LISTENER = {"barnabas_metrics_listener": "127.0.0.1:0"}
RECEIVER = {"metric_reporters": "org.apache.kafka.common.metrics.JmxReporter,org.example.Receiver"}


async def names_telemetry(node: RunningNode, client: ApiVersionsRequest) -> bool:
    named = {each.api_key for each in (await node.ask(client)).api_keys}
    assert (71 in named) == (72 in named)
    return 71 in named


@pytest.mark.parametrize(
    ("settings", "metrics", "is_named"),
    [
        ({}, None, False),
        ({}, "*", False),  # without a receiver
        (LISTENER, None, False),
        (LISTENER, "", False),
        (LISTENER, "*", True),
        (RECEIVER, None, True),
    ],
)
def test_client_telemetry_is_advertised_only_with_a_receiver(
    tmp_path: Path, settings: dict[str, str], metrics: str | None, is_named: bool
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, **settings) as node:
            if metrics is not None:
                put = CLIENT_METRICS_CONFIGS.put("all", {"metrics": metrics})
                await node.broker.metadata.write(lambda image: Decision(None, (put,)))
            assert await names_telemetry(node, CLIENT) == is_named
            assert await names_telemetry(node, ApiVersionsRequest("barnabas", "1"))

    scenario()
