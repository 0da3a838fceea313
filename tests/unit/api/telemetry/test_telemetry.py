"""Clients that push metrics, from the subscription to /metrics."""

from pathlib import Path
from typing import Any

import pytest
from bench.stalls.bombs import METRICS as METRICS_BOMBS

from barnabas.metadata.configs import CLIENT_METRICS_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from barnabas.wire.messages.push_telemetry import PushTelemetryRequest
from barnabas.wire.records.compression import Compression, compress
from support.loop import on_loop
from support.nodes import RunningNode, running_node
from support.otlp import gauge, metrics_data, point, sums

ID = bytes(range(16))
METRICS = metrics_data([gauge("lag", point(1.5)), sums("records", point(2))], {"client_rack": "r1"})


async def subscribe(node: RunningNode, **configs: str) -> None:
    """Set the configs of the only subscription; keys have underscores for dots."""
    overrides = {key.replace("_", "."): value for key, value in configs.items()}
    await node.broker.metadata.write(lambda _: Decision(None, (CLIENT_METRICS_CONFIGS.put("s", overrides),)))


async def ask(node: RunningNode, instance_id: bytes = ID) -> Any:
    return await node.ask(GetTelemetrySubscriptionsRequest(instance_id))


async def push(node: RunningNode, subscription_id: int, metrics: bytes = METRICS, **fields: Any) -> ErrorCode:
    request = PushTelemetryRequest(ID, subscription_id, metrics=metrics, **fields)
    return ErrorCode((await node.ask(request)).error_code)


def test_a_client_without_an_id_gets_one_and_its_subscription(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, telemetry_max_bytes="5000") as node:
            await subscribe(node, metrics="b,a", interval_ms="1000", match="client_id=te.t")
            found = await ask(node, bytes(16))
            assert found.error_code == ErrorCode.NONE
            assert found.client_instance_id != bytes(16)
            assert found.requested_metrics == ["a", "b"]
            assert (found.push_interval_ms, found.telemetry_max_bytes) == (1000, 5000)
            assert found.accepted_compression_types == [4, 3, 1, 2]
            assert found.delta_temporality

    scenario()


def test_a_changed_or_deleted_subscription_gets_a_new_id(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await subscribe(node, metrics="a")
            first = await ask(node)
            await subscribe(node, metrics="*", interval_ms="100")
            second = await ask(node)
            assert second.subscription_id != first.subscription_id
            assert second.requested_metrics == ["*"]
            await node.broker.metadata.write(lambda _: Decision(None, (CLIENT_METRICS_CONFIGS.remove("s"),)))
            assert (await ask(node)).requested_metrics == []

    scenario()


@pytest.mark.parametrize("codec", list(Compression))
def test_pushed_metrics_in_any_codec_are_stored_under_the_client_id(
    tmp_path: Path, codec: Compression
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            node.connection.client_software_name = "java"
            await subscribe(node, metrics="*")
            identity = (await ask(node)).subscription_id
            packed = compress(codec, METRICS)
            assert await push(node, identity, packed, compression_type=codec) is ErrorCode.NONE
            [(labels, value)] = node.broker.client_telemetry.metrics.gauges()
            assert value == 1.5
            assert labels["metric"] == "lag"
            assert labels["client_rack"] == "r1"
            assert labels["client_id"] == "test"
            assert labels["client_software_name"] == "java"
            assert labels["client_instance_id"] == "AAECAwQFBgcICQoLDA0ODw"
            assert [value for _, value in node.broker.client_telemetry.metrics.sums()] == [2.0]

    scenario()


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"metrics": b"nonsense"}, ErrorCode.INVALID_RECORD),
        ({"metrics": METRICS + b"nonsense"}, ErrorCode.INVALID_RECORD),
        ({"compression_type": Compression.ZSTD}, ErrorCode.INVALID_RECORD),
        ({"compression_type": 9}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": b"x" * 1001}, ErrorCode.TELEMETRY_TOO_LARGE),
        ({"metrics": b""}, ErrorCode.NONE),
    ],
)
def test_an_invalid_push_is_rejected(tmp_path: Path, fields: dict[str, Any], code: ErrorCode) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, telemetry_max_bytes="1000") as node:
            await subscribe(node, metrics="*")
            identity = (await ask(node)).subscription_id
            assert await push(node, identity, **fields) is code
            assert list(node.broker.client_telemetry.metrics.gauges()) == []

    scenario()


def test_a_push_before_its_interval_is_rejected_unless_it_is_the_last(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await subscribe(node, metrics="*", interval_ms="1000")
            identity = (await ask(node)).subscription_id
            assert await push(node, identity) is ErrorCode.NONE
            assert await push(node, identity) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
            assert await push(node, identity, terminating=True) is ErrorCode.NONE
            assert [value for _, value in node.broker.client_telemetry.metrics.sums()] == [4.0]

    scenario()


@pytest.mark.parametrize("metrics", METRICS_BOMBS.values(), ids=list(METRICS_BOMBS))
def test_a_push_that_decompresses_without_end_is_rejected(tmp_path: Path, metrics: bytes) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await subscribe(node, metrics="*")
            identity = (await ask(node)).subscription_id
            packed = compress(Compression.ZSTD, metrics)
            assert len(packed) < 1_000
            assert await push(node, identity, packed, compression_type=4) is ErrorCode.INVALID_RECORD
            assert node.broker.client_telemetry.statistics()["series_count"] == 0

    scenario()
