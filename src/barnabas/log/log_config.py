"""The topic configs that apply to a log."""

from dataclasses import dataclass
from functools import cached_property

from barnabas.wire.records.compression import Compression

#: Kafka's value for "never" and "no limit" (`Long.MAX_VALUE`).
FOREVER = (1 << 63) - 1
CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"
DAY_MS = 24 * 60 * 60 * 1000

_CODECS = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


@dataclass(frozen=True, kw_only=True)
class LogConfig:
    """The topic configs of a log, with Kafka's defaults; replaced as a whole when one changes."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    flush_messages: int = FOREVER
    flush_ms: int = FOREVER
    file_delete_delay_ms: int = 60_000
    max_message_bytes: int = (1 << 20) + 12
    message_timestamp_type: str = CREATE_TIME
    message_timestamp_before_max_ms: int = FOREVER
    message_timestamp_after_max_ms: int = 60 * 60 * 1000
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_zstd_level: int = 3
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    delete_retention_ms: int = DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = FOREVER
    preallocate: bool = False
    min_insync_replicas: int = 1
    verifies_transactions: bool = True
    #: Replicas whose copying is throttled: `*` or `partition:broker`.
    leader_throttled_replicas: frozenset[str] = frozenset()
    follower_throttled_replicas: frozenset[str] = frozenset()
    #: Largest size of a produced batch's records after decompression: what an uncompressed request could contain.
    unpacked_bytes_max: int = 100 << 20

    def __post_init__(self) -> None:
        assert self.compression_type == "producer" or self.compression_type in _CODECS, self.compression_type
        assert self.message_timestamp_type in (CREATE_TIME, LOG_APPEND_TIME), self.message_timestamp_type
        assert self.cleanup_policy <= {"delete", "compact"}, self.cleanup_policy

    @cached_property
    def is_compacted(self) -> bool:
        """Whether the log is compacted; then every record needs a key."""
        return "compact" in self.cleanup_policy

    @cached_property
    def is_deleted(self) -> bool:
        """Whether retention by time and size applies."""
        return "delete" in self.cleanup_policy

    @cached_property
    def stamps_append_time(self) -> bool:
        """Whether the broker sets the timestamps of records, instead of the producers."""
        return self.message_timestamp_type == LOG_APPEND_TIME

    @cached_property
    def target_codec(self) -> Compression | None:
        """The codec that batches are stored with; None stores each as the producer compressed it."""
        return _CODECS.get(self.compression_type)

    @cached_property
    def target_level(self) -> int | None:
        """The level for `target_codec`; None for the codec's own default."""
        if self.target_codec is Compression.ZSTD:
            return self.compression_zstd_level
        if self.target_codec is Compression.GZIP and self.compression_gzip_level >= 0:
            return self.compression_gzip_level
        return None

    @cached_property
    def preallocate_bytes(self) -> int:
        """Size to preallocate for the file of a new segment, or 0."""
        return self.segment_bytes if self.preallocate else 0

    @cached_property
    def keeps_batches(self) -> bool:
        """Whether a batch with a valid header is stored exactly as its producer sent it."""
        return not self.stamps_append_time and not self.inspects_records and self.target_codec is None

    @cached_property
    def inspects_records(self) -> bool:
        """Whether validation must read the records, because the batch's header is not enough."""
        return self.is_compacted or (
            not self.stamps_append_time and self.message_timestamp_before_max_ms != FOREVER
        )
