import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.metadata.configs import TOPIC_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.metadata.writer import MetadataWriter
from barnabas.policy import AlterConfigPolicy, PolicyViolation
from barnabas.policy.policies import Policies, PolicySettings
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
)
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND = 0, 1, 2
RequestedEdit = tuple[int, str, str, int, str | None]


async def alter(
    node: RunningNode, *edits: RequestedEdit, validate_only: bool = False, version: int | None = None
) -> list[AlterConfigsResourceResponse]:
    """Send one resource with one edit for each of (type, name, key, operation, value)."""
    resources = [
        AlterConfigsResource(kind, name, [AlterableConfig(key, operation, value)])
        for kind, name, key, operation, value in edits
    ]
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)
    responses: list[AlterConfigsResourceResponse] = (await node.ask(request, version)).responses
    return responses


async def code(node: RunningNode, *edits: RequestedEdit) -> ErrorCode:
    [response] = await alter(node, *edits)
    assert bool(response.error_message) == bool(response.error_code)
    return ErrorCode(response.error_code)


@on_loop
@pytest.mark.parametrize("version", [0, 1])
async def test_configs_of_every_type_are_set(tmp_path: Path, version: int) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        responses = await alter(
            node,
            (TOPIC, "t", "retention.ms", SET, "5"),
            (BROKER, "1", "log.segment.bytes", SET, "2000000"),
            (BROKER, "", "log.retention.ms", SET, "7"),
            (GROUP, "g", "consumer.session.timeout.ms", SET, "46000"),
            (CLIENT_METRICS, "m", "interval.ms", SET, "1000"),
            version=version,
        )
        assert [each.error_code for each in responses] == [0] * 5
        image = node.broker.image
        assert dict(image.topic_configs) == {"t": {"retention.ms": "5"}}
        assert dict(image.broker_configs) == {
            "1": {"log.segment.bytes": "2000000"},
            "": {"log.retention.ms": "7"},
        }
        assert dict(image.group_configs) == {"g": {"consumer.session.timeout.ms": "46000"}}
        assert dict(image.client_metrics_configs) == {"m": {"interval.ms": "1000"}}


@on_loop
async def test_each_resource_has_its_own_result_in_one_transaction(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        before = node.broker.image.revision
        edits: list[RequestedEdit] = [
            (TOPIC, "t", "retention.ms", SET, "5"),
            (77, "x", "a", SET, "b"),
            (TOPIC, "gone", "retention.ms", SET, "5"),
            (GROUP, "g", "no.such.key", SET, "5"),
            (BROKER_LOGGER, "1", "no.such.logger", SET, "INFO"),
            (BROKER, "", "log.retention.ms", SET, "7"),
            (BROKER, "2", "log.retention.ms", SET, "7"),
        ]
        responses = await alter(node, *edits)
        assert [(each.resource_type, each.resource_name) for each in responses] == [
            each[:2] for each in edits
        ]
        assert [ErrorCode(each.error_code) for each in responses] == [
            ErrorCode.NONE,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_CONFIG,
            ErrorCode.INVALID_CONFIG,
            ErrorCode.NONE,
            ErrorCode.INVALID_REQUEST,
        ]
        assert node.broker.image.revision == before + 1


@on_loop
async def test_levels_of_loggers_are_altered_while_the_store_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def catch_up(_writer: MetadataWriter, timeout_ms: int | None = None) -> None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Cannot read the metadata store.")

    monkeypatch.setattr(MetadataWriter, "catch_up", catch_up)
    level = (BROKER_LOGGER, "1", get_logger("barnabas.test.outage").name, SET, "DEBUG")
    async with running_node(tmp_path) as node:
        assert [each.error_code for each in await alter(node, level)] == [0]
        responses = await alter(node, level, (TOPIC, "t", "retention.ms", SET, "5"))
        assert [each.error_code for each in responses] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2


@on_loop
async def test_a_duplicate_resource_is_rejected_and_others_are_changed(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        twice = (GROUP, "g", "consumer.session.timeout.ms", SET, "46000")
        responses = await alter(node, twice, (CLIENT_METRICS, "m", "interval.ms", SET, "100"), twice)
        assert [each.error_code for each in responses] == [
            ErrorCode.INVALID_REQUEST,
            0,
            ErrorCode.INVALID_REQUEST,
        ]
        assert dict(node.broker.image.group_configs) == {}


@on_loop
async def test_a_broker_id_with_leading_zeros_is_the_same_broker(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        responses = await alter(
            node, (BROKER, "1", "log.retention.ms", SET, "5"), (BROKER, "01", "log.retention.ms", SET, "6")
        )
        assert [each.error_code for each in responses] == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
        assert dict(node.broker.image.broker_configs) == {"1": {"log.retention.ms": "5"}}


@on_loop
async def test_invalid_changes_are_rejected(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        for edits, expected in [
            ((TOPIC, "", "retention.ms", SET, "5"), ErrorCode.INVALID_REQUEST),
            ((TOPIC, "a b", "retention.ms", SET, "5"), ErrorCode.INVALID_TOPIC_EXCEPTION),
            ((TOPIC, "t", "retention.ms", SET, "-7"), ErrorCode.INVALID_CONFIG),
            ((TOPIC, "t", "retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
            ((TOPIC, "t", "retention.ms", 9, "5"), ErrorCode.INVALID_REQUEST),
            ((TOPIC, "t", "retention.ms", APPEND, "5"), ErrorCode.INVALID_CONFIG),
            ((BROKER, "x", "log.retention.ms", SET, "5"), ErrorCode.INVALID_REQUEST),
            ((BROKER, "1", "log.retention.ms", APPEND, "5"), ErrorCode.INVALID_CONFIG),
            ((BROKER, "1", "no.such.key", APPEND, "5"), ErrorCode.INVALID_CONFIG),
            ((BROKER, "1", "log.segment.bytes", SET, "5"), ErrorCode.INVALID_REQUEST),
            ((BROKER, "1", "node.id", SET, "2"), ErrorCode.INVALID_REQUEST),
            ((BROKER, "", "sasl.enabled.mechanisms", SET, "PLAIN"), ErrorCode.INVALID_REQUEST),
            ((BROKER_LOGGER, "", "root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
            ((BROKER_LOGGER, "2", "root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
            ((GROUP, "", "consumer.session.timeout.ms", SET, "46000"), ErrorCode.INVALID_REQUEST),
            ((CLIENT_METRICS, "", "interval.ms", SET, "500"), ErrorCode.INVALID_REQUEST),
            ((GROUP, "", "consumer.session.timeout.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
            ((CLIENT_METRICS, "m", "metrics", APPEND, "a"), ErrorCode.INVALID_CONFIG),
        ]:
            assert await code(node, edits) is expected, edits  # type: ignore[arg-type]


@on_loop
async def test_concurrent_edits_are_all_stored(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        keys = ("retention.ms", "segment.ms", "flush.ms", "delete.retention.ms")
        await asyncio.gather(*(alter(node, (TOPIC, "t", key, SET, "7")) for key in keys))
        assert dict(node.broker.image.topic_configs["t"]) == dict.fromkeys(keys, "7")


@on_loop
async def test_a_topic_deleted_meanwhile_leaves_no_configs(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        gone = TopicToDelete("t", ZERO_UUID)
        _, [response] = await asyncio.gather(
            node.broker.metadata.write(lambda image: decide_delete(image, [gone])),
            alter(node, (TOPIC, "t", "retention.ms", SET, "7")),
        )
        assert response.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert dict(node.broker.image.topic_configs) == {}


@on_loop
async def test_validate_only_changes_nothing(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        before = node.broker.image
        [good, bad] = await alter(
            node,
            (GROUP, "g", "consumer.session.timeout.ms", SET, "46000"),
            (GROUP, "h", "consumer.session.timeout.ms", SET, "1"),
            validate_only=True,
        )
        assert (good.error_code, bad.error_code) == (0, ErrorCode.INVALID_CONFIG)
        assert node.broker.image is before


@on_loop
async def test_a_brokers_values_must_be_consistent_with_each_other_and_the_defaults(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        assert await code(node, (BROKER, "", "num.io.threads", SET, "16")) is ErrorCode.NONE
        assert await code(node, (BROKER, "1", "num.io.threads", SET, "32")) is ErrorCode.NONE
        assert await code(node, (BROKER, "1", "num.io.threads", SET, "8")) is ErrorCode.INVALID_REQUEST
        assert await code(node, (BROKER, "1", "num.io.threads", DELETE, None)) is ErrorCode.NONE


class NoShortRetention(AlterConfigPolicy):
    """Records the set and deleted keys of requests."""

    def validate(self, request_metadata: AlterConfigPolicy.RequestMetadata) -> None:
        if "retention.ms" in request_metadata.configs:
            message = f"{request_metadata.resource.name}: retention is ours"
            raise PolicyViolation(message)


@on_loop
async def test_a_policy_violation_fails_one_resource_and_not_others(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.broker.policies = Policies(PolicySettings(alter_config_class=f"{__name__}:NoShortRetention"))
        await node.broker.policies.load()
        await node.create(new_topic("t"), new_topic("u"))
        responses = await alter(
            node, (TOPIC, "t", "retention.ms", SET, "5"), (TOPIC, "u", "segment.ms", SET, "7")
        )
        assert [each.error_code for each in responses] == [ErrorCode.POLICY_VIOLATION, 0]
        assert responses[0].error_message == "t: retention is ours"
        assert dict(node.broker.image.topic_configs) == {"u": {"segment.ms": "7"}}
        await node.broker.policies.close()


class ChangingPolicy(Policies):
    """Allows everything; its first call changes the topic's configs."""

    def __init__(self, node: RunningNode) -> None:
        super().__init__()
        self.node = node
        self.calls: list[Mapping[str, str | None]] = []

    @property
    def guards_alteration(self) -> bool:
        return True

    async def check_alter_config(
        self, altered: AlterConfigPolicy.RequestMetadata, removed: Iterable[str] = ()
    ) -> None:
        self.calls.append(altered.configs)
        if len(self.calls) == 1:
            change = TOPIC_CONFIGS.put("t", {"cleanup.policy": ""})
            await self.node.broker.metadata.write(lambda _: Decision(None, (change,)))


@on_loop
async def test_policies_run_again_when_the_resulting_configs_have_changed(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        node.broker.policies = policies = ChangingPolicy(node)
        assert await code(node, (TOPIC, "t", "cleanup.policy", APPEND, "compact")) is ErrorCode.NONE
        assert policies.calls == [{"cleanup.policy": "delete,compact"}, {"cleanup.policy": "compact"}]
        assert dict(node.broker.image.topic_configs) == {"t": {"cleanup.policy": "compact"}}
