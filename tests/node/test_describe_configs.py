"""DescribeConfigs: effective values, sources, synonyms, documentation."""

import pytest

from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from support.wire import Wire

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
DYNAMIC_TOPIC, STATIC_BROKER, DEFAULT = 1, 4, 5
LONG = 5


def ask(
    wire: Wire, kind: int, name: str, *keys: str, version: int | None = None, **fields: bool
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(kind, name, list(keys) or None)
    result: DescribeConfigsResult = wire.ask(
        DescribeConfigsRequest(resources=[resource], **fields), version
    ).results[0]
    return result


def configs(result: DescribeConfigsResult) -> dict[str, DescribeConfigsResourceResult]:
    assert result.error_code == ErrorCode.NONE, result
    return {config.name: config for config in result.configs}


@pytest.fixture
def wire_with_topic(kafka: EmbeddedBroker, wire: Wire) -> Wire:
    kafka.create_topic("t", configs={"retention.ms": "5000"})
    return wire


@pytest.mark.kafka_settings({"log.segment.bytes": "2000000"})
def test_each_value_has_its_source(wire_with_topic: Wire) -> None:
    found = configs(ask(wire_with_topic, TOPIC, "t"))
    assert (found["retention.ms"].value, found["retention.ms"].config_source) == ("5000", DYNAMIC_TOPIC)
    assert (found["segment.bytes"].value, found["segment.bytes"].config_source) == ("2000000", STATIC_BROKER)
    assert (found["cleanup.policy"].value, found["cleanup.policy"].config_source) == ("delete", DEFAULT)
    assert not any(config.read_only for config in found.values())


@pytest.mark.kafka_settings({"log.segment.bytes": "2000000"})
def test_synonyms_are_ordered_from_topic_to_default(kafka: EmbeddedBroker, wire_with_topic: Wire) -> None:
    kafka.create_topic("own", configs={"segment.bytes": "3000000"})
    found = configs(ask(wire_with_topic, TOPIC, "own", include_synonyms=True))
    assert [(each.name, each.value, each.source) for each in found["segment.bytes"].synonyms] == [
        ("segment.bytes", "3000000", DYNAMIC_TOPIC),
        ("log.segment.bytes", "2000000", STATIC_BROKER),
        ("log.segment.bytes", "1073741824", DEFAULT),
    ]
    assert configs(ask(wire_with_topic, TOPIC, "own"))["segment.bytes"].synonyms == []


def test_only_requested_keys_are_returned(wire_with_topic: Wire) -> None:
    assert sorted(configs(ask(wire_with_topic, TOPIC, "t", "retention.ms", "segment.ms"))) == [
        "retention.ms",
        "segment.ms",
    ]
    assert configs(ask(wire_with_topic, TOPIC, "t", "no.such.key")) == {}


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_returns_its_fields(wire_with_topic: Wire, version: int) -> None:
    found = configs(
        ask(wire_with_topic, TOPIC, "t", version=version, include_synonyms=True, include_documentation=True)
    )
    retention = found["retention.ms"]
    assert retention.value == "5000"
    assert len(found["segment.bytes"].synonyms) == 1
    assert (retention.config_type == LONG) == (version >= 3)
    assert bool(retention.documentation) == (version >= 3)


def test_a_broker_describes_only_itself(kafka: EmbeddedBroker, wire_with_topic: Wire) -> None:
    own = kafka.server.broker.broker_id
    found = configs(ask(wire_with_topic, BROKER, str(own)))
    assert found["log.dirs"].value == str(kafka.directory)
    assert found["log.dirs"].config_source == STATIC_BROKER
    assert found["log.dirs"].read_only
    assert len(found) > 200
    for name in (str(own + 1), "one"):
        refused = ask(wire_with_topic, BROKER, name)
        assert refused.error_code == ErrorCode.INVALID_REQUEST
        assert f"'{name}'" in (refused.error_message or "") or name in (refused.error_message or "")


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "12345", ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_failed_resource_is_reported_and_others_are_described(
    wire_with_topic: Wire, kind: int, name: str, code: ErrorCode
) -> None:
    resources = [
        DescribeConfigsResource(kind, name, None),
        DescribeConfigsResource(TOPIC, "t", ["segment.ms"]),
    ]
    results = wire_with_topic.ask(DescribeConfigsRequest(resources=resources)).results
    refused, good = sorted(results, key=lambda result: result.error_code == ErrorCode.NONE)
    assert (refused.resource_type, refused.resource_name) == (kind, name)
    assert ErrorCode(refused.error_code) is code
    assert refused.error_message
    assert list(configs(good)) == ["segment.ms"]


@pytest.mark.parametrize("kind", [0, 77])
def test_an_unknown_type_makes_the_request_invalid(wire_with_topic: Wire, kind: int) -> None:
    resources = [
        DescribeConfigsResource(kind, "x", None),
        DescribeConfigsResource(TOPIC, "t", ["segment.ms"]),
    ]
    results = wire_with_topic.ask(DescribeConfigsRequest(resources=resources)).results
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2
    assert all(str(kind) in (result.error_message or "") for result in results)
