from pathlib import Path

from barnabas.config.describe import describe_topic
from barnabas.config.keys.topic import TOPIC_KEYS
from barnabas.metadata.configs import BROKER_CONFIGS, CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node

TOPIC, BROKER = 2, 4


async def ask(
    node: RunningNode, *resources: tuple[int, str], keys: list[str] | None = None, **flags: bool
) -> list[DescribeConfigsResult]:
    wanted = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for kind, name in resources
    ]
    response = await node.ask(DescribeConfigsRequest(resources=wanted, **flags))
    results: list[DescribeConfigsResult] = response.results
    return results


@on_loop
async def test_a_topic_has_its_overrides_and_the_brokers_values(tmp_path: Path) -> None:
    async with running_node(tmp_path, log_retention_ms="1000") as node:
        await node.create(new_topic("t", configs={"segment.ms": "7"}))
        [result] = await ask(node, (TOPIC, "t"), include_synonyms=True, include_documentation=True)
        shown = {config.name: config for config in result.configs}
        assert set(shown) <= set(TOPIC_KEYS)
        assert (shown["segment.ms"].value, shown["segment.ms"].config_source) == ("7", 1)
        assert (shown["retention.ms"].value, shown["retention.ms"].config_source) == ("1000", 4)
        assert (shown["flush.ms"].config_source, shown["flush.ms"].config_type) == (5, 5)
        assert shown["flush.ms"].documentation
        assert shown["retention.ms"].synonyms[0].name == "log.retention.ms"


@on_loop
async def test_topics_with_overrides_are_described(tmp_path: Path) -> None:
    first, last = min(TOPIC_KEYS), max(name for name, key in TOPIC_KEYS.items() if key.listed)
    own = {first: "delta", "flush.ms": "7", "internal.segment.bytes": "4096", last: "true"}
    async with running_node(tmp_path) as node:
        names = [f"t{count}" for count in range(len(own) + 1)]
        await node.create(
            *(new_topic(name, configs=dict(list(own.items())[:count])) for count, name in enumerate(names))
        )
        for keys in (None, [first, "flush.ms", "flush.messages", "internal.segment.bytes"]):
            results = await ask(node, *((TOPIC, name) for name in names), keys=keys)
            layers = node.broker.dynamic_config.layers
            for count, result in enumerate(results):
                entries = describe_topic(layers, dict(list(own.items())[:count]), keys)
                assert [(each.name, each.value, each.config_source) for each in result.configs] == [
                    (entry.name, entry.value, entry.source) for entry in entries
                ]


@on_loop
async def test_only_requested_keys_are_returned(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        [result] = await ask(node, (TOPIC, "t"), keys=["retention.ms", "no.such.key"])
        [config] = result.configs
        assert (config.name, config.synonyms, config.documentation) == ("retention.ms", [], None)


@on_loop
async def test_each_resource_has_its_own_result(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        asked = [
            (TOPIC, "t"),
            (TOPIC, "gone"),
            (TOPIC, "bad name"),
            (BROKER, "1"),
            (BROKER, "2"),
            (BROKER, "x"),
        ]
        results = await ask(node, *asked)
        assert [(result.resource_type, result.resource_name) for result in results] == asked
        assert [result.error_code for result in results] == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.NONE,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_REQUEST,
        ]
        assert [bool(result.error_message) for result in results] == [False, True, True, False, True, True]


@on_loop
async def test_a_broker_has_its_own_values_without_secrets(tmp_path: Path) -> None:
    async with running_node(tmp_path, ssl_key_password="secret", num_partitions="5") as node:
        [result] = await ask(node, (BROKER, "1"))
        shown = {config.name: config for config in result.configs}
        assert (shown["num.partitions"].value, shown["num.partitions"].config_source) == ("5", 4)
        assert (shown["ssl.key.password"].value, shown["ssl.key.password"].is_sensitive) == (None, True)
        assert (shown["node.id"].value, shown["node.id"].read_only) == ("1", True)


@on_loop
async def test_every_resource_type_is_described(tmp_path: Path) -> None:
    async with running_node(tmp_path, log_retention_ms="1000") as node:
        changes = (
            BROKER_CONFIGS.put("1", {"log.retention.ms": "3"}),
            BROKER_CONFIGS.put("", {"log.retention.ms": "2", "my.secret": "x"}),
            GROUP_CONFIGS.put("g", {"consumer.session.timeout.ms": "46000"}),
            CLIENT_METRICS_CONFIGS.put("m", {"interval.ms": "100"}),
        )
        await node.create(new_topic("t"))
        await node.broker.metadata.write(lambda image: Decision(None, changes))
        asked = [(TOPIC, "t"), (BROKER, "1"), (BROKER, ""), (32, "g"), (16, "m"), (8, "1"), (32, "other")]
        results = await ask(node, *asked, include_synonyms=True)
        topic, own, every, group, metrics, loggers, other = (
            {config.name: config for config in result.configs} for result in results
        )
        sources = [synonym.source for synonym in own["log.retention.ms"].synonyms]
        assert sources == [2, 3, 4, 5]  # log.retention.hours is the default
        assert (topic["retention.ms"].value, topic["retention.ms"].config_source) == ("3", 2)
        assert (every["log.retention.ms"].value, every["log.retention.ms"].config_source) == ("2", 3)
        assert (every["my.secret"].value, every["my.secret"].is_sensitive) == (None, True)
        assert (group["consumer.session.timeout.ms"].config_source, len(group)) == (8, len(other))
        assert (metrics["interval.ms"].value, metrics["interval.ms"].config_source) == ("100", 7)
        levels = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")
        assert (loggers["root"].value in levels, loggers["root"].config_source) == (True, 6)


@on_loop
async def test_groups_and_subscriptions_need_names_and_loggers_this_brokers_id(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        results = await ask(node, (32, ""), (16, ""), (8, ""), (8, "2"))
        assert {result.error_code for result in results} == {ErrorCode.INVALID_REQUEST}
        assert all(result.error_message for result in results)
