"""Errors that Apache Kafka's tools print have Kafka's exact text, because scripts compare them."""

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.wire.messages.alter_configs import AlterableConfig as LegacyConfig
from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.messages.alter_configs import AlterConfigsResource as LegacyResource
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from barnabas.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.wire.schema import Message, Struct
from differential import symbols
from differential.batches import Batch
from differential.compare import TEXTS
from differential.sequences import Step, create, produce, topic
from differential.symbols import Name
from differential.world import World

A: Any = Name("a")
TOPIC, BROKER = 2, 4


def upsert(user: str = "u", mechanism: int = 1, iterations: int = 4096) -> Step:
    upsertion = ScramCredentialUpsertion(user, mechanism, iterations, b"salt", b"salted")
    return AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0


def remove_credentials(*users: str, mechanism: int = 1) -> Step:
    deletions = [ScramCredentialDeletion(user, mechanism) for user in users]
    return AlterUserScramCredentialsRequest(deletions=deletions), 0


def describe_users(*users: str) -> Step:
    return DescribeUserScramCredentialsRequest([UserName(user) for user in users]), 0


def feature(name: str, level: int, upgrade_type: int = 1) -> Step:
    update = FeatureUpdateKey(name, level, upgrade_type > 1, upgrade_type)
    return UpdateFeaturesRequest(feature_updates=[update], validate_only=True), 1


def alter(resource_type: int, name: Any, **configs: str | None) -> Step:
    edits = [AlterableConfig(key.replace("_", "."), 0, value) for key, value in configs.items()]
    return IncrementalAlterConfigsRequest([AlterConfigsResource(resource_type, name, edits)]), 1


def replace_all(resource_type: int, name: Any, **configs: str | None) -> Step:
    edits = [LegacyConfig(key.replace("_", "."), value) for key, value in configs.items()]
    return AlterConfigsRequest([LegacyResource(resource_type, name, edits)]), 2


def configured(**configs: str) -> Step:
    return CreateTopicsRequest([topic("new", **configs)], 10_000, validate_only=True), 7


def replicated(name: str, replication_factor: int) -> CreatableTopic:
    new = topic(name)
    new.replication_factor = replication_factor
    return new


def partitions(name: Any, count: int) -> Step:
    return CreatePartitionsRequest([CreatePartitionsTopic(name, count, None)], 10_000, validate_only=True), 3


CASES: dict[str, Step] = {
    "CreateTopics, there already": create(topic("a")),
    "CreateTopics, twice": create(topic("b"), topic("b")),
    "CreateTopics, a partition too few": create(topic("b", 0)),
    "CreateTopics, no replica": create(replicated("b", 0)),
    "CreateTopics, an unknown config": configured(no_such_key="1"),
    "CreateTopics, Kafka's own": (
        CreateTopicsRequest([CreatableTopic("__cluster_metadata", 1, 1)], 10_000),
        7,
    ),
    "CreatePartitions, as many": partitions(A, 1),
    "CreatePartitions, none": partitions(A, 0),
    "IncrementalAlterConfigs, an unknown config": alter(TOPIC, A, no_such_key="1"),
    "IncrementalAlterConfigs, read at the start": alter(
        BROKER, "1", security_inter_broker_protocol="PLAINTEXT"
    ),
    "IncrementalAlterConfigs, per broker": alter(BROKER, "", ssl_client_auth="required"),
    "AlterConfigs, read at the start": replace_all(BROKER, "1", node_id="2"),
    "AlterConfigs, an unknown config": replace_all(TOPIC, A, no_such_key="1"),
    "ConsumerGroupDescribe, unknown": (ConsumerGroupDescribeRequest(["missing.group"]), 1),
    "DescribeGroups, unknown": (DescribeGroupsRequest(["missing.group"]), 6),
    "UpdateFeatures, too low": feature("metadata.version", 0, 2),
    "UpdateFeatures, too high": feature("metadata.version", 99),
    "UpdateFeatures, no downgrade": feature("group.version", 0),
    "UpdateFeatures, a safe downgrade": feature("metadata.version", 29, 2),
    "UpdateFeatures, an unsafe downgrade": feature("metadata.version", 29, 3),
    "UpdateFeatures, unknown": feature("no.such.feature", 1),
    "AlterUserScramCredentials, too few iterations": upsert(iterations=4095),
    "AlterUserScramCredentials, too many iterations": upsert(iterations=16_385),
    "AlterUserScramCredentials, unknown mechanism": upsert(mechanism=0),
    "AlterUserScramCredentials, no user": upsert(user=""),
    "AlterUserScramCredentials, unknown user": remove_credentials("nobody"),
    "AlterUserScramCredentials, twice": remove_credentials("nobody", "nobody"),
    "DescribeUserScramCredentials, unknown": describe_users("nobody"),
    "DescribeUserScramCredentials, twice": describe_users("nobody", "nobody"),
}


def texts(struct: Struct) -> Iterator[tuple[str, str | None]]:
    """Return every error message in a response, and its field."""
    for field in struct.FIELDS:
        value = getattr(struct, field.name)
        if field.name in TEXTS:
            yield field.name, value
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Struct):
                yield from texts(each)


def error_messages(world: World, request: Message, version: int) -> list[list[tuple[str, str | None]]]:
    """Return each broker's messages, Kafka's first."""
    found = []
    for side, names in world.sides():
        response = world.pair.apis[request.API_KEY].response
        body = side.exchange(symbols.resolve(request, names), response, version).body
        assert body is not None
        found.append(sorted(texts(body), key=str))
    return found


def test_invalid_timestamps_have_kafkas_error_messages(world: World) -> None:
    """The message of each record contains the broker's time; the other messages are equal."""
    bounded = topic("a", message_timestamp_after_max_ms="1000", message_timestamp_before_max_ms="1000")
    assert world.exchange(*create(bounded)) == []
    [step] = produce("a", Batch())
    found = [dict(reversed(each)) for each in error_messages(world, step[0], 9)]
    kafka, barnabas = (each["error_message"] for each in found)
    assert kafka == barnabas == "One or more records have been rejected due to invalid timestamp"
    kafka, barnabas = ((each["batch_index_error_message"] or "").partition("[")[0] for each in found)
    assert kafka == barnabas


@pytest.mark.parametrize("name", CASES)
def test_errors_have_kafkas_messages(world: World, name: str) -> None:
    assert world.exchange(*create(topic("a"))) == []
    kafka, barnabas = error_messages(world, *CASES[name])
    assert any(text for _, text in kafka)
    assert barnabas == kafka
