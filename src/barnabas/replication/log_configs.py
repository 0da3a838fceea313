"""Builds the configs of logs and of the log cleaner from configuration keys."""

from collections.abc import Mapping
from pathlib import Path

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.topics import effective_topic_config
from barnabas.log.compaction.cleaner import CleanerSettings
from barnabas.log.log_config import LogConfig

#: Means all log directories in `cordoned.log.dirs`.
_EVERY_DIRECTORY = "*"


def cordons(broker_config: BrokerConfig, directory: Path) -> bool:
    """Whether a log directory receives no new logs (`cordoned.log.dirs`)."""
    cordoned = broker_config.items_or_none("cordoned.log.dirs") or ()
    return _EVERY_DIRECTORY in cordoned or directory in (Path(path).absolute() for path in cordoned)


def cleaner_settings(broker_config: BrokerConfig) -> CleanerSettings:
    """Return the settings of the log cleaner."""
    return CleanerSettings(
        threads_count=broker_config.integer("log.cleaner.threads"),
        backoff_ms=broker_config.integer("log.cleaner.backoff.ms"),
        dedupe_buffer_bytes=broker_config.integer("log.cleaner.dedupe.buffer.size"),
        load_factor=broker_config.number("log.cleaner.io.buffer.load.factor"),
        io_buffer_bytes=broker_config.integer("log.cleaner.io.buffer.size"),
        bytes_per_second=broker_config.number("log.cleaner.io.max.bytes.per.second"),
    )


def log_config(broker_config: BrokerConfig, overrides: Mapping[str, str]) -> LogConfig:
    """Return the log configuration of a topic with `overrides` on a broker."""
    topic = effective_topic_config(broker_config, overrides)
    is_compacted = "compact" in topic.cleanup_policy
    return LogConfig(
        segment_bytes=topic.internal_segment_bytes or topic.segment_bytes,
        segment_ms=min(topic.segment_ms, topic.max_compaction_lag_ms) if is_compacted else topic.segment_ms,
        segment_jitter_ms=topic.segment_jitter_ms,
        segment_index_bytes=topic.segment_index_bytes,
        index_interval_bytes=topic.index_interval_bytes,
        retention_ms=topic.retention_ms,
        retention_bytes=topic.retention_bytes,
        flush_messages=topic.flush_messages,
        flush_ms=topic.flush_ms,
        file_delete_delay_ms=topic.file_delete_delay_ms,
        max_message_bytes=topic.max_message_bytes,
        message_timestamp_type=topic.message_timestamp_type,
        message_timestamp_before_max_ms=topic.message_timestamp_before_max_ms,
        message_timestamp_after_max_ms=topic.message_timestamp_after_max_ms,
        compression_type=topic.compression_type,
        compression_gzip_level=topic.compression_gzip_level,
        compression_zstd_level=topic.compression_zstd_level,
        cleanup_policy=frozenset(topic.cleanup_policy),
        delete_retention_ms=topic.delete_retention_ms,
        min_cleanable_dirty_ratio=topic.min_cleanable_dirty_ratio,
        min_compaction_lag_ms=topic.min_compaction_lag_ms,
        max_compaction_lag_ms=topic.max_compaction_lag_ms,
        preallocate=topic.preallocate,
        min_insync_replicas=topic.min_insync_replicas,
        leader_throttled_replicas=frozenset(topic.leader_replication_throttled_replicas),
        follower_throttled_replicas=frozenset(topic.follower_replication_throttled_replicas),
        verifies_transactions=broker_config.boolean("transaction.partition.verification.enable"),
        unpacked_bytes_max=broker_config.integer("socket.request.max.bytes"),
    )
