from dataclasses import dataclass

import pytest

from barnabas.log.log_config import LogConfig
from barnabas.log.retention import deletable_count


@dataclass
class Facts:
    base_offset: int
    size_bytes: int
    timestamp_ms: int

    def largest_timestamp_ms(self) -> int:
        return self.timestamp_ms


SEGMENTS = [Facts(0, 100, 1_000), Facts(10, 100, 2_000), Facts(20, 100, 3_000), Facts(30, 50, 4_000)]
KEEP = LogConfig(retention_ms=-1, retention_bytes=-1)


def count(
    config: LogConfig, *, start: int = 0, end: int = 40, watermark: int = 40, now_ms: int = 5_000
) -> int:
    return deletable_count(
        SEGMENTS, config, log_start_offset=start, log_end_offset=end, high_watermark=watermark, now_ms=now_ms
    )


def test_nothing_is_deleted_without_a_reason() -> None:
    assert count(KEEP) == 0


@pytest.mark.parametrize(("start", "expected"), [(0, 0), (9, 0), (10, 1), (29, 2), (30, 3), (40, 3)])
def test_segments_before_the_log_start_offset_are_deleted_but_never_the_active_one(
    start: int, expected: int
) -> None:
    assert count(KEEP, start=start) == expected


@pytest.mark.parametrize(
    ("retention_bytes", "expected"), [(350, 0), (251, 0), (250, 1), (150, 2), (149, 2), (50, 3), (0, 4)]
)
def test_segments_above_the_size_limit_are_deleted_while_enough_remains(
    retention_bytes: int, expected: int
) -> None:
    assert count(LogConfig(retention_ms=-1, retention_bytes=retention_bytes)) == expected


@pytest.mark.parametrize(("now_ms", "expected"), [(1_500, 0), (1_501, 1), (2_501, 2), (9_000, 4)])
def test_segments_older_than_retention_are_deleted_including_the_active_one(
    now_ms: int, expected: int
) -> None:
    assert count(LogConfig(retention_ms=500), now_ms=now_ms) == expected


def test_nothing_above_the_high_watermark_is_deleted() -> None:
    assert count(LogConfig(retention_ms=0), watermark=25, now_ms=9_000) == 2
    assert count(LogConfig(retention_bytes=0), watermark=9, now_ms=9_000) == 0


def test_compacted_logs_ignore_retention_by_age_and_size() -> None:
    config = LogConfig(retention_ms=0, retention_bytes=0, cleanup_policy=frozenset({"compact"}))
    assert count(config) == 0
    assert count(config, start=10) == 1


def test_the_reasons_are_applied_one_after_the_other() -> None:
    assert count(LogConfig(retention_ms=2_500, retention_bytes=150), start=10, now_ms=5_501) == 3


def test_an_empty_active_segment_stays() -> None:
    segments = [Facts(0, 100, 0), Facts(10, 0, 0)]
    deletable = deletable_count(
        segments,
        LogConfig(retention_ms=1),
        log_start_offset=0,
        log_end_offset=10,
        high_watermark=10,
        now_ms=99,
    )
    assert deletable == 1
