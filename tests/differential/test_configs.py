"""Every value of every config is accepted or rejected as in Kafka, and altered configs are described as in Kafka."""

from typing import Any

import pytest

from barnabas.wire.messages.alter_configs import AlterableConfig as Config
from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.messages.alter_configs import AlterConfigsResource as Replaced
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.wire.schema import Message
from differential.config_values import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    KEYS,
    SET,
    SUBTRACT,
    TOPIC,
    values_of,
)
from differential.sequences import create, topic
from differential.symbols import Name
from differential.world import World

T: Any = Name("t")
G: Any = Name("g")
M: Any = Name("m")


def edit(kind: int, name: str, *edits: tuple[str, int, str | None]) -> IncrementalAlterConfigsRequest:
    configs = [AlterableConfig(*each) for each in edits]
    return IncrementalAlterConfigsRequest([AlterConfigsResource(kind, name, configs)])


def replace(kind: int, name: str, **configs: str) -> AlterConfigsRequest:
    given = [Config(key.replace("_", "."), value) for key, value in configs.items()]
    return AlterConfigsRequest([Replaced(kind, name, given)])


def check(world: World, *requests: Message) -> None:
    """Send each request at its newest version; the responses and the altered configs must be equal."""
    for request in requests:
        version = world.pair.apis[request.API_KEY].versions.last
        differences = world.exchange(request, version)
        assert not differences, "\n".join([*map(str, differences), str(request)])


@pytest.mark.parametrize(
    ("kind", "name"), [(TOPIC, T), (BROKER, "1"), (BROKER, ""), (GROUP, G), (CLIENT_METRICS, M)]
)
def test_every_value_of_every_key_is_accepted_or_rejected_as_in_kafka(
    world: World, kind: int, name: str
) -> None:
    world.compare(*create(topic("t")))
    found = []
    for key in KEYS[kind].values():
        for value in values_of(key):
            request = edit(kind, name, (key.name, SET, value))
            request.validate_only = True
            found += [f"{key.name}={value!r}: {each}" for each in world.exchange(request, 1)]
    assert not found, "\n".join(found)


def test_topic_configs_change_as_in_kafka(world: World) -> None:
    check(
        world,
        create(topic("t", retention_ms="5"))[0],
        edit(TOPIC, T, ("retention.ms", SET, "6"), ("segment.ms", SET, "7")),
        edit(TOPIC, T, ("retention.ms", DELETE, None), ("preallocate", SET, " TRUE ")),
        edit(TOPIC, T, ("cleanup.policy", APPEND, "compact"), ("segment.ms", SET, " 9")),
        edit(TOPIC, T, ("cleanup.policy", APPEND, "compact, delete")),
        edit(TOPIC, T, ("cleanup.policy", SUBTRACT, "delete")),
        edit(TOPIC, T, ("cleanup.policy", SUBTRACT, "compact")),
        edit(TOPIC, T, ("cleanup.policy", SET, "")),
        edit(TOPIC, T, ("cleanup.policy", APPEND, "compact")),
        edit(TOPIC, T, ("leader.replication.throttled.replicas", APPEND, "0:1,1:1")),
        edit(TOPIC, T, ("leader.replication.throttled.replicas", SUBTRACT, "1:1")),
        edit(TOPIC, T, ("min.compaction.lag.ms", SET, "100")),
        edit(TOPIC, T, ("max.compaction.lag.ms", SET, "10")),
        replace(TOPIC, T, retention_ms="5", max_message_bytes="100"),
        replace(TOPIC, T, retention_ms="6"),
        replace(TOPIC, T, retention_ms="-7"),
        replace(TOPIC, T),
    )


def test_broker_configs_change_as_in_kafka(world: World) -> None:
    watched = DescribeConfigsRequest([DescribeConfigsResource(TOPIC, T), DescribeConfigsResource(GROUP, G)])
    watched.include_synonyms = True
    keys = ("log.retention.ms", "log.cleanup.policy", "my.own.key", "message.max.bytes", "num.io.threads")
    try:
        check(
            world,
            create(topic("t"))[0],
            edit(BROKER, "1", ("log.retention.ms", SET, "1000000")),
            watched,
            edit(BROKER, "", ("log.retention.ms", SET, "2000000"), ("log.cleanup.policy", APPEND, "compact")),
            watched,
            edit(TOPIC, T, ("cleanup.policy", APPEND, "compact")),
            edit(BROKER, "1", ("log.cleanup.policy", SUBTRACT, "delete"), ("my.own.key", SET, "x")),
            edit(BROKER, "1", ("log.retention.ms", DELETE, None)),
            watched,
            edit(BROKER, "", ("message.max.bytes", SET, " 100000 "), ("num.io.threads", SET, "16")),
            edit(BROKER, "", ("num.io.threads", SET, "32")),
            edit(BROKER, "", ("num.io.threads", SET, "8")),
            edit(BROKER, "", ("group.consumer.assignment.interval.ms", SET, "7")),
            watched,
            edit(BROKER, "1", ("log.retention.ms", SET, "5"), ("node.id", SET, "7")),
            replace(BROKER, "1", log_segment_bytes="2000000"),
            replace(BROKER, "1"),
        )
    finally:
        check(
            world,
            edit(BROKER, "1", *[(key, DELETE, None) for key in keys]),
            edit(BROKER, "", ("num.io.threads", SET, "16")),
            edit(
                BROKER, "", *[(key, DELETE, None) for key in (*keys, "group.consumer.assignment.interval.ms")]
            ),
        )


@pytest.mark.parametrize("name", ["plaintext", "other", "PLAINTEXT"])
def test_listener_configs_change_as_in_kafka(world: World, name: str) -> None:
    keys = [
        ("ssl.client.auth", "required"),
        ("ssl.keystore.password", "secret"),
        ("max.connections", "7"),
        ("sasl.enabled.mechanisms", "PLAIN"),
        ("log.retention.ms", "5"),
        ("no.such.key", "5"),
    ]
    for key, value in keys:
        prefixed = f"listener.name.{name}.{key}"
        for broker in ("1", ""):
            request = edit(BROKER, broker, (prefixed, SET, value))
            request.validate_only = True
            check(world, request)
    check(
        world,
        edit(BROKER, "1", (f"listener.name.{name}.ssl.keystore.password", SET, "secret")),
        edit(BROKER, "1", (f"listener.name.{name}.ssl.keystore.password", DELETE, None)),
    )


def test_group_and_client_metrics_configs_change_as_in_kafka(world: World) -> None:
    listing = ListConfigResourcesRequest([GROUP, CLIENT_METRICS])
    check(
        world,
        edit(GROUP, G, ("consumer.session.timeout.ms", SET, "46000")),
        edit(GROUP, G, ("share.auto.offset.reset", SET, "earliest")),
        edit(CLIENT_METRICS, M, ("interval.ms", SET, "1000"), ("metrics", SET, "a.b, c,c")),
        listing,
        edit(GROUP, G, ("consumer.session.timeout.ms", SET, "1")),
        edit(CLIENT_METRICS, M, ("metrics", APPEND, "d")),
        replace(CLIENT_METRICS, M, match="client_id=a.*"),
        replace(GROUP, G),
        edit(CLIENT_METRICS, M, ("match", DELETE, None)),
        listing,
    )


@pytest.mark.parametrize("level", ["DEBUG", "debug", "FATAL", "OFF", "WARNING", "", None])
def test_levels_of_the_root_logger_are_accepted_or_rejected_as_in_kafka(
    world: World, level: str | None
) -> None:
    for operation in (SET, DELETE, APPEND):
        request = edit(BROKER_LOGGER, "1", ("root", operation, level))
        request.validate_only = True
        check(world, request)


def test_the_level_of_the_root_logger_is_described_as_in_kafka(world: World) -> None:
    shown = DescribeConfigsRequest([DescribeConfigsResource(BROKER_LOGGER, "1", ["root"])])
    try:
        check(world, edit(BROKER_LOGGER, "1", ("root", SET, "ERROR")), shown)
    finally:
        check(world, edit(BROKER_LOGGER, "1", ("root", SET, "INFO")), shown)


@pytest.mark.parametrize(
    "request_",
    [
        edit(GROUP, "", ("share.auto.offset.reset", APPEND, "x")),
        edit(GROUP, "", ("no.such.key", SET, "x")),
        edit(CLIENT_METRICS, "", ("interval.ms", SUBTRACT, "x")),
        edit(CLIENT_METRICS, "", ("interval.ms", SET, "soon")),
        edit(TOPIC, "", ("retention.ms", APPEND, "x")),
        edit(TOPIC, "no spaces", ("retention.ms", APPEND, "x")),
        edit(TOPIC, "no spaces", ("retention.ms", SET, "soon")),
        edit(TOPIC, Name("missing"), ("retention.ms", SET, "soon")),  # type: ignore[arg-type]
        edit(TOPIC, Name("missing"), ("retention.ms", SET, None)),  # type: ignore[arg-type]
        edit(BROKER, "2", ("log.retention.ms", SET, "soon")),
        edit(BROKER, "1", ("node.id", SET, "1"), ("log.cleanup.policy", APPEND, "shred")),
        edit(BROKER_LOGGER, "2", ("root", SET, "loud")),
        edit(BROKER_LOGGER, "1", ("no.such.logger", SET, "loud")),
        edit(77, "", ("a", SET, "b"), ("a", SET, "b")),
    ],
)
def test_of_two_errors_the_same_one_is_returned_as_in_kafka(
    world: World, request_: IncrementalAlterConfigsRequest
) -> None:
    request_.validate_only = True
    check(world, request_)
