from dataclasses import fields
from pathlib import Path

import pytest

from barnabas.config.definition import ConfigError
from barnabas.log.log_config import LogConfig
from barnabas.replication.log_configs import cleaner_settings, cordons, log_config
from support.nodes import config_of

BROKER = config_of(Path("/data"), log_retention_ms="1000", log_segment_bytes="2097152")


def test_a_topic_without_overrides_has_the_brokers_values() -> None:
    config = log_config(BROKER, {})
    assert (config.retention_ms, config.segment_bytes) == (1000, 2_097_152)


def test_overrides_precede_the_brokers_values() -> None:
    config = log_config(BROKER, {"retention.ms": "5", "cleanup.policy": "compact,delete"})
    assert (config.retention_ms, config.segment_bytes) == (5, 2_097_152)
    assert config.cleanup_policy == {"compact", "delete"}


@pytest.mark.parametrize(
    ("key", "text", "field", "value"),
    [
        ("segment.ms", "11", "segment_ms", 11),
        ("segment.jitter.ms", "12", "segment_jitter_ms", 12),
        ("segment.index.bytes", "1300", "segment_index_bytes", 1300),
        ("index.interval.bytes", "14", "index_interval_bytes", 14),
        ("retention.bytes", "15", "retention_bytes", 15),
        ("flush.messages", "16", "flush_messages", 16),
        ("flush.ms", "17", "flush_ms", 17),
        ("file.delete.delay.ms", "18", "file_delete_delay_ms", 18),
        ("max.message.bytes", "19", "max_message_bytes", 19),
        ("message.timestamp.type", "LogAppendTime", "message_timestamp_type", "LogAppendTime"),
        ("message.timestamp.before.max.ms", "20", "message_timestamp_before_max_ms", 20),
        ("message.timestamp.after.max.ms", "21", "message_timestamp_after_max_ms", 21),
        ("delete.retention.ms", "22", "delete_retention_ms", 22),
        ("min.cleanable.dirty.ratio", "0.25", "min_cleanable_dirty_ratio", 0.25),
        ("min.compaction.lag.ms", "23", "min_compaction_lag_ms", 23),
        ("max.compaction.lag.ms", "24", "max_compaction_lag_ms", 24),
        ("compression.type", "zstd", "compression_type", "zstd"),
        ("compression.gzip.level", "3", "compression_gzip_level", 3),
        ("compression.zstd.level", "4", "compression_zstd_level", 4),
        ("preallocate", "true", "preallocate", True),
        ("min.insync.replicas", "2", "min_insync_replicas", 2),
    ],
)
def test_every_key_reaches_the_log(key: str, text: str, field: str, value: object) -> None:
    assert getattr(log_config(BROKER, {key: text}), field) == value


def test_every_field_of_a_log_config_is_set() -> None:
    defaults, given = LogConfig(), log_config(config_of(Path("/data")), {})
    assert {field.name: getattr(given, field.name) for field in fields(LogConfig)} == {
        field.name: getattr(defaults, field.name) for field in fields(LogConfig)
    }


def test_an_invalid_override_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"retention\.ms"):
        log_config(BROKER, {"retention.ms": "soon"})


@pytest.mark.parametrize(
    ("cordoned", "expected"),
    [("", [False, False]), ("/a", [True, False]), ("/a,/b", [True, True]), ("*", [True, True])],
)
def test_cordoned_directories_are_the_named_ones_or_all(cordoned: str, expected: list[bool]) -> None:
    config = config_of(Path("/a"), log_dirs="/a,/b", cordoned_log_dirs=cordoned)
    assert [cordons(config, Path(path)) for path in ("/a", "/b")] == expected


def test_a_segment_is_rolled_before_its_records_exceed_the_maximum_compaction_lag() -> None:
    overrides = {"segment.ms": "500", "max.compaction.lag.ms": "300"}
    assert log_config(BROKER, overrides).segment_ms == 500
    assert log_config(BROKER, {**overrides, "cleanup.policy": "compact"}).segment_ms == 300
    assert log_config(BROKER, {"segment.ms": "200", "cleanup.policy": "compact"}).segment_ms == 200


def test_the_cleaner_has_the_brokers_configuration() -> None:
    config = config_of(Path("/data"), log_cleaner_threads="3", log_cleaner_io_max_bytes_per_second="5.5")
    settings = cleaner_settings(config)
    assert (settings.threads_count, settings.bytes_per_second, settings.backoff_ms) == (3, 5.5, 15_000)
