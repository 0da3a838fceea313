"""Client metrics: Kafka answers these APIs even though it does not advertise them without a receiver."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from barnabas import api
from barnabas.api import registry
from barnabas.config.alter_op import OpType
from barnabas.telemetry.client_instances import subscription_id
from barnabas.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from barnabas.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.wire.messages.push_telemetry import PushTelemetryRequest
from barnabas.wire.schema import Message
from differential.brokers import UNADVERTISED
from differential.world import VISIBLE_INTERVAL_S, VISIBLE_TIMEOUT_S, Pair, World

CLIENT_METRICS = 16
METRIC = "org.apache.kafka.producer."
INTERVAL_MS = 200_000

ids = (number.to_bytes(16, "big") for number in itertools.count(1 << 64))


@pytest.fixture
def with_subscription(pair: Pair) -> Iterator[World]:
    """Create one subscription on both brokers that matches all clients."""
    served = registry.build(api)
    both = replace(pair, apis=pair.apis | {key: served[key] for key in UNADVERTISED})
    with both.world() as world:
        subscribe(world, "metrics", METRIC)
        subscribe(world, "interval.ms", str(INTERVAL_MS))
        wait_for_subscription(world)
        yield world


def subscribe(world: World, key: str, value: str) -> None:
    config = AlterableConfig(name=key, config_operation=OpType.SET, value=value)
    resource = AlterConfigsResource(CLIENT_METRICS, "differential", [config])
    same(world, IncrementalAlterConfigsRequest([resource]), 1)


def wait_for_subscription(world: World) -> None:
    """Wait until both have the subscription: Kafka's broker receives it from its controller."""
    deadline_s = time.monotonic() + VISIBLE_TIMEOUT_S
    for side, _ in world.sides():
        while True:
            request = GetTelemetrySubscriptionsRequest(next(ids))
            found = side.exchange(request, GetTelemetrySubscriptionsResponse, 0).body
            assert isinstance(found, GetTelemetrySubscriptionsResponse)
            if found.push_interval_ms == INTERVAL_MS:
                break
            assert time.monotonic() < deadline_s, side.name
            time.sleep(VISIBLE_INTERVAL_S)


def same(world: World, request: Message, version: int = 0) -> None:
    differences = world.exchange(request, version)
    assert not differences, "\n".join(map(str, differences))


def push(instance_id: bytes, **fields: object) -> PushTelemetryRequest:
    identity = subscription_id((METRIC,), INTERVAL_MS, instance_id)
    request = PushTelemetryRequest(instance_id, identity, compression_type=0, metrics=b"")
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def test_a_client_gets_its_subscription_and_pushes_once(with_subscription: World) -> None:
    client = next(ids)
    for request in (
        GetTelemetrySubscriptionsRequest(client),
        GetTelemetrySubscriptionsRequest(client),
        push(client),
        push(client),
        GetTelemetrySubscriptionsRequest(client),
        push(client, terminating=True),
        push(client),
        push(client),
    ):
        same(with_subscription, request)


@pytest.mark.parametrize(
    "wrong",
    [
        {"subscription_id": 7},
        {"compression_type": 5},
        {"compression_type": -1},
        {"metrics": bytes(1_048_577)},
        {"client_instance_id": bytes(16)},
        {"client_instance_id": bytes(15) + b"\x01"},
        {"terminating": True, "subscription_id": 7},
    ],
    ids=lambda wrong: " ".join(wrong),
)
def test_an_invalid_push_and_later_pushes_fail_as_in_kafka(
    with_subscription: World, wrong: dict[str, object]
) -> None:
    client = next(ids)
    same(with_subscription, GetTelemetrySubscriptionsRequest(client))
    same(with_subscription, push(client, **wrong))
    same(with_subscription, push(client))
    same(with_subscription, GetTelemetrySubscriptionsRequest(client))


def test_a_push_without_a_subscription_request_creates_the_client_instance(with_subscription: World) -> None:
    client = next(ids)
    same(with_subscription, push(client))
    same(with_subscription, GetTelemetrySubscriptionsRequest(client))
