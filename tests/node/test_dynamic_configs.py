"""Dynamic broker configs take effect immediately: one case for each key with an effect."""

import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from support.waiting import until
from support.wire import Wire

EVERY_BROKER = Resource(ResourceKind.BROKER, "")

#: broker key -> (a value, the resulting config of the log of a topic without own configs)
IN_LOGS: dict[str, tuple[str, str, object]] = {
    "log.segment.bytes": ("2000000", "segment_bytes", 2_000_000),
    "log.roll.ms": ("7", "segment_ms", 7),
    "log.roll.jitter.ms": ("8", "segment_jitter_ms", 8),
    "log.retention.ms": ("9", "retention_ms", 9),
    "log.retention.bytes": ("10", "retention_bytes", 10),
    "log.cleanup.policy": ("compact,delete", "cleanup_policy", frozenset({"compact", "delete"})),
    "log.cleaner.delete.retention.ms": ("20", "delete_retention_ms", 20),
    "log.cleaner.min.cleanable.ratio": ("0.25", "min_cleanable_dirty_ratio", 0.25),
    "log.cleaner.min.compaction.lag.ms": ("21", "min_compaction_lag_ms", 21),
    "log.cleaner.max.compaction.lag.ms": ("22", "max_compaction_lag_ms", 22),
    "log.index.size.max.bytes": ("1100", "segment_index_bytes", 1100),
    "log.index.interval.bytes": ("12", "index_interval_bytes", 12),
    "log.flush.interval.messages": ("13", "flush_messages", 13),
    "log.flush.interval.ms": ("14", "flush_ms", 14),
    "log.segment.delete.delay.ms": ("15", "file_delete_delay_ms", 15),
    "log.preallocate": ("true", "preallocate", True),
    "min.insync.replicas": ("2", "min_insync_replicas", 2),
    "log.message.timestamp.type": ("LogAppendTime", "message_timestamp_type", "LogAppendTime"),
    "log.message.timestamp.before.max.ms": ("16", "message_timestamp_before_max_ms", 16),
    "log.message.timestamp.after.max.ms": ("17", "message_timestamp_after_max_ms", 17),
    "message.max.bytes": ("18", "max_message_bytes", 18),
    "compression.type": ("zstd", "compression_type", "zstd"),
    "compression.gzip.level": ("5", "compression_gzip_level", 5),
    "compression.zstd.level": ("6", "compression_zstd_level", 6),
    "transaction.partition.verification.enable": ("false", "verifies_transactions", False),
}


#: broker key -> (a value, the resulting config of the log cleaner)
IN_THE_CLEANER: dict[str, tuple[str, str, object]] = {
    "log.cleaner.threads": ("2", "threads_count", 2),
    "log.cleaner.backoff.ms": ("30", "backoff_ms", 30),
    "log.cleaner.dedupe.buffer.size": ("10000000", "dedupe_buffer_bytes", 10_000_000),
    "log.cleaner.io.buffer.load.factor": ("0.5", "load_factor", 0.5),
    "log.cleaner.io.buffer.size": ("10000", "io_buffer_bytes", 10_000),
    "log.cleaner.io.max.bytes.per.second": ("1e6", "bytes_per_second", 1e6),
}


def own(kafka: EmbeddedBroker) -> Resource:
    """Return the broker's own resource."""
    return Resource(ResourceKind.BROKER, str(kafka.server.broker.broker_id))


def alter(kafka: EmbeddedBroker, resource: Resource, key: str, value: str | None) -> None:
    """Set a value, or delete it."""
    operation = OpType.DELETE if value is None else OpType.SET
    outcomes = kafka.client.admin.alter_configs({resource: [AlterConfigOp(key, operation, value)]})
    for error in outcomes.values():
        if error is not None:
            raise error


def log_config(kafka: EmbeddedBroker, topic: str) -> Any:
    return kafka.server.broker.replicas.partition(topic, 0).log.config


def test_a_value_applies_to_every_log_until_it_is_deleted(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("plain")
    kafka.create_topic("own", configs={"retention.ms": "77"})
    before = log_config(kafka, "plain")
    for key, (value, field, expected) in IN_LOGS.items():
        for resource in (EVERY_BROKER, own(kafka)):
            if (key, resource) == ("min.insync.replicas", own(kafka)):
                continue  # only the cluster has it (KIP-966)
            alter(kafka, resource, key, value)
            assert getattr(log_config(kafka, "plain"), field) == expected, key
            alter(kafka, resource, key, None)
            assert log_config(kafka, "plain") == before, key
    assert log_config(kafka, "own").retention_ms == 77


def test_a_value_applies_to_the_log_cleaner_immediately(kafka: EmbeddedBroker) -> None:
    for key, (value, field, expected) in IN_THE_CLEANER.items():
        alter(kafka, EVERY_BROKER, key, value)
        assert getattr(kafka.server.parts.cleaner.settings, field) == expected, key


def test_a_brokers_own_value_overrides_the_default_of_all_brokers(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    alter(kafka, EVERY_BROKER, "log.retention.ms", "1")
    alter(kafka, own(kafka), "log.retention.ms", "2")
    assert log_config(kafka, "t").retention_ms == 2
    alter(kafka, own(kafka), "log.retention.ms", None)
    assert log_config(kafka, "t").retention_ms == 1


def test_values_apply_to_new_topics_and_after_a_restart(kafka: EmbeddedBroker) -> None:
    alter(kafka, EVERY_BROKER, "log.retention.ms", "1")
    kafka.create_topic("later")
    assert log_config(kafka, "later").retention_ms == 1
    kafka.restart()
    assert log_config(kafka, "later").retention_ms == 1
    assert kafka.server.broker.config.integer("log.retention.ms") == 1


def test_variables_in_dynamic_values_are_kept_because_anyone_could_read_the_brokers_files(
    kafka: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "of the broker")
    alter(kafka, EVERY_BROKER, "config.providers", "env")
    provider = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    alter(kafka, EVERY_BROKER, "config.providers.env.class", provider)
    key = "errors.deadletterqueue.topic.name.prefix"
    alter(kafka, EVERY_BROKER, key, "${env:SECRET}")
    assert kafka.server.broker.config.text(key) == "${env:SECRET}"


def test_the_new_maximum_batch_size_applies_to_producers(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    kafka.produce("t", b"x" * 1000)
    alter(kafka, EVERY_BROKER, "message.max.bytes", "500")
    with pytest.raises(KafkaError) as refused:
        kafka.produce("t", b"x" * 1000)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_with_flush_messages_a_record_is_on_disk_before_its_response(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    flusher = kafka.server.broker.flusher
    alter(kafka, EVERY_BROKER, "log.flush.interval.messages", "1")
    before = flusher.statistics()["flushes_count"]
    kafka.produce("t", b"v")
    assert flusher.statistics()["flushes_count"] > before


def is_closed(connection: socket.socket) -> bool:
    """Whether the other end closes within the socket's timeout."""
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def connect(kafka: EmbeddedBroker) -> socket.socket:
    return socket.create_connection(("127.0.0.1", kafka.port), timeout=5)


@pytest.mark.parametrize(
    "key", ["max.connection.creation.rate", "listener.name.plaintext.max.connection.creation.rate"]
)
def test_connections_beyond_the_rate_wait_and_are_served(kafka: EmbeddedBroker, key: str) -> None:
    alter(kafka, own(kafka), key, "5")
    connections = kafka.server.parts.connections
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(kafka.port)) for _ in range(8)]
        assert [wire.ask(ApiVersionsRequest("test", "1")).error_code for wire in wires] == [0] * 8
    assert connections.statistics()["delayed_count"] > 0
    assert connections.statistics()["refused_count"] == 0


@pytest.mark.parametrize(
    ("key", "bound", "free"),
    [
        ("max.connections", "1", None),  # which is the client's own
        ("max.connections.per.ip", "1", None),
        ("max.connections.per.ip.overrides", "127.0.0.1:1", None),
        ("max.connections.per.ip.overrides", "127.0.0.1:1", "127.0.0.1:9"),
        ("listener.name.plaintext.max.connections", "1", "9"),
    ],
)
def test_connection_limits_apply_to_the_next_connection(
    kafka: EmbeddedBroker, key: str, bound: str, free: str | None
) -> None:
    alter(kafka, EVERY_BROKER, key, bound)
    with connect(kafka) as refused:
        assert is_closed(refused)
    alter(kafka, EVERY_BROKER, key, free)
    with connect(kafka) as taken:
        taken.settimeout(0.1)
        assert not is_closed(taken)


def test_recovery_uses_the_threads_that_were_set_before_the_start(kafka: EmbeddedBroker) -> None:
    alter(kafka, EVERY_BROKER, "num.recovery.threads.per.data.dir", "4")
    kafka.restart()
    assert kafka.server.broker.config.integer("num.recovery.threads.per.data.dir") == 4


def test_new_logs_avoid_a_cordoned_directory(tmp_path: Path) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    with EmbeddedBroker({"log.dirs": ",".join(map(str, directories))}) as kafka:
        alter(kafka, own(kafka), "cordoned.log.dirs", str(directories[0]))
        kafka.create_topic("t", partitions=4)
        assert not list(directories[0].glob("t-*"))
        assert len(list(directories[1].glob("t-*"))) == 4
        alter(kafka, own(kafka), "cordoned.log.dirs", None)
        kafka.create_topic("u", partitions=4)
        assert list(directories[0].glob("u-*"))


def test_a_new_throttle_applies_to_a_running_move(tmp_path: Path) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    with EmbeddedBroker({"log.dirs": ",".join(map(str, directories))}) as kafka:
        kafka.create_topic("t")
        kafka.produce("t", b"x" * 500_000)
        alter(kafka, EVERY_BROKER, "replica.alter.log.dirs.io.max.bytes.per.second", "1")
        [there] = [directory for directory in directories if (directory / "t-0").exists()]
        [target] = [directory for directory in directories if directory != there]
        partitions = AlterReplicaLogDirTopic("t", [0])
        request = AlterReplicaLogDirsRequest([AlterReplicaLogDir(str(target), [partitions])])
        [topic] = kafka.client.admin.send(request).results
        assert [partition.error_code for partition in topic.partitions] == [ErrorCode.NONE]
        assert (there / "t-0").exists()  # at this rate for five days
        alter(kafka, EVERY_BROKER, "replica.alter.log.dirs.io.max.bytes.per.second", None)
        until(lambda: (target / "t-0").exists())
