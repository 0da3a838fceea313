import pytest

from barnabas.log.log_config import FOREVER, LogConfig
from barnabas.wire.records.compression import Compression


def test_the_defaults_are_kafkas() -> None:
    config = LogConfig()
    assert config.segment_bytes == 1_073_741_824
    assert config.max_message_bytes == 1_048_588
    assert config.retention_ms == config.segment_ms == 604_800_000
    assert config.message_timestamp_after_max_ms == 3_600_000
    assert config.message_timestamp_before_max_ms == config.flush_ms == 9_223_372_036_854_775_807
    assert (config.is_deleted, config.is_compacted, config.stamps_append_time) == (True, False, False)
    assert config.target_codec is None
    assert not config.inspects_records


def test_compaction_and_a_lower_timestamp_bound_require_reading_the_records() -> None:
    assert LogConfig(cleanup_policy=frozenset({"compact", "delete"})).inspects_records
    assert LogConfig(message_timestamp_before_max_ms=FOREVER - 1).inspects_records
    assert not LogConfig(
        message_timestamp_before_max_ms=5, message_timestamp_type="LogAppendTime"
    ).inspects_records


@pytest.mark.parametrize(
    ("name", "codec", "level"),
    [
        ("producer", None, None),
        ("uncompressed", Compression.NONE, None),
        ("gzip", Compression.GZIP, 7),
        ("snappy", Compression.SNAPPY, None),
        ("lz4", Compression.LZ4, None),
        ("zstd", Compression.ZSTD, 9),
    ],
)
def test_a_topic_may_have_its_own_codec(name: str, codec: Compression | None, level: int | None) -> None:
    config = LogConfig(compression_type=name, compression_gzip_level=7, compression_zstd_level=9)
    assert (config.target_codec, config.target_level) == (codec, level)


def test_gzip_has_a_default_level_of_its_own() -> None:
    assert LogConfig(compression_type="gzip").target_level is None
