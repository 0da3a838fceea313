"""Dynamic configs of topics and client metrics take effect immediately: a case for each key with an effect."""

import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.config.keys.table import TABLE_KEYS
from barnabas.config.keys.topic import TOPIC_KEYS
from barnabas.testing import EmbeddedBroker
from barnabas.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)

#: topic key -> (a value, the resulting config of the topic's log)
IN_LOGS: dict[str, tuple[str, str, object]] = {
    "cleanup.policy": ("compact,delete", "cleanup_policy", frozenset({"compact", "delete"})),
    "compression.gzip.level": ("5", "compression_gzip_level", 5),
    "compression.type": ("zstd", "compression_type", "zstd"),
    "compression.zstd.level": ("6", "compression_zstd_level", 6),
    "delete.retention.ms": ("20", "delete_retention_ms", 20),
    "file.delete.delay.ms": ("15", "file_delete_delay_ms", 15),
    "flush.messages": ("13", "flush_messages", 13),
    "flush.ms": ("14", "flush_ms", 14),
    "index.interval.bytes": ("12", "index_interval_bytes", 12),
    "internal.segment.bytes": ("5000", "segment_bytes", 5_000),
    "max.compaction.lag.ms": ("22", "max_compaction_lag_ms", 22),
    "max.message.bytes": ("18", "max_message_bytes", 18),
    "message.timestamp.after.max.ms": ("17", "message_timestamp_after_max_ms", 17),
    "message.timestamp.before.max.ms": ("16", "message_timestamp_before_max_ms", 16),
    "message.timestamp.type": ("LogAppendTime", "message_timestamp_type", "LogAppendTime"),
    "min.cleanable.dirty.ratio": ("0.25", "min_cleanable_dirty_ratio", 0.25),
    "min.compaction.lag.ms": ("21", "min_compaction_lag_ms", 21),
    "min.insync.replicas": ("2", "min_insync_replicas", 2),
    "preallocate": ("true", "preallocate", True),
    "retention.bytes": ("10", "retention_bytes", 10),
    "retention.ms": ("9", "retention_ms", 9),
    "segment.bytes": ("2000000", "segment_bytes", 2_000_000),
    "segment.index.bytes": ("1100", "segment_index_bytes", 1100),
    "segment.jitter.ms": ("8", "segment_jitter_ms", 8),
    "segment.ms": ("7", "segment_ms", 7),
}

#: Have an effect with several brokers: see `test_several_brokers.py`.
WITH_SEVERAL_BROKERS = (
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "unclean.leader.election.enable",
)


def alter(kafka: EmbeddedBroker, resource: Resource, key: str, value: str | None) -> None:
    """Set a value, or delete it."""
    operation = OpType.DELETE if value is None else OpType.SET
    [error] = kafka.client.admin.alter_configs({resource: [AlterConfigOp(key, operation, value)]}).values()
    assert error is None, (key, error)


def test_a_topics_value_applies_to_its_logs_until_it_is_deleted(kafka: EmbeddedBroker) -> None:
    for name in ("t", "other"):
        kafka.create_topic(name, partitions=2)
    partitions = {(each.topic, each.index): each for each in kafka.server.broker.replicas}
    before = partitions["t", 0].log.config
    topic = Resource(ResourceKind.TOPIC, "t")
    for key, (value, field, expected) in IN_LOGS.items():
        alter(kafka, topic, key, value)
        assert [getattr(partitions["t", index].log.config, field) for index in range(2)] == [expected] * 2, (
            key
        )
        assert partitions["other", 0].log.config == before, key
        alter(kafka, topic, key, None)
        assert partitions["t", 0].log.config == before, key


def test_every_topic_key_with_an_effect_on_logs_has_a_case() -> None:
    acting = {name for name, key in TOPIC_KEYS.items() if key.effect.name == "HONOURED"}
    acting -= {key.name for key in TABLE_KEYS}
    assert acting == {*IN_LOGS, *WITH_SEVERAL_BROKERS}


def subscription(kafka: EmbeddedBroker, client_id: str) -> GetTelemetrySubscriptionsResponse:
    """Return the subscription of a new client instance with that client id."""
    with BlockingClient(kafka.bootstrap, client_id=client_id) as client:
        answer: GetTelemetrySubscriptionsResponse = client.admin.send(GetTelemetrySubscriptionsRequest())
        return answer


@pytest.mark.parametrize(
    ("key", "value", "field", "before", "after"),
    [
        ("metrics", "a.b", "requested_metrics", ["c.d"], ["a.b"]),
        ("interval.ms", "2000", "push_interval_ms", 300_000, 2_000),
        ("match", "client_id=other", "requested_metrics", ["c.d"], []),
    ],
)
def test_client_subscriptions_follow_the_configs(
    kafka: EmbeddedBroker, key: str, value: str, field: str, before: object, after: object
) -> None:
    metrics_resource = Resource(ResourceKind.CLIENT_METRICS, "m")
    alter(kafka, metrics_resource, "metrics", "c.d")
    assert getattr(subscription(kafka, "me"), field) == before
    alter(kafka, metrics_resource, key, value)
    assert getattr(subscription(kafka, "me"), field) == after
