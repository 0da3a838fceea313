from dataclasses import dataclass

import pytest

from barnabas.log.compaction.log_to_clean import LogBounds, LogToClean, decide_cleanable, group_segments
from barnabas.log.log_config import LogConfig

NOW_MS = 1_000_000
COMPACT = frozenset({"compact"})


@dataclass
class Fake:
    base_offset: int
    size_bytes: int = 100
    largest_ms: int = 0
    first_ms: int = -1
    end_offset: int = 0
    index_bytes: int = 0

    def largest_timestamp_ms(self) -> int:
        return self.largest_ms

    def first_timestamp_ms(self) -> int:
        return self.first_ms


def decide(
    *segments: Fake,
    start: int = 0,
    end: int = 100,
    stable: int = 100,
    active: int = 50,
    cleaner: int = 0,
    **config: object,
) -> LogToClean:
    bounds = LogBounds(start, end, stable, active, cleaner)
    return decide_cleanable(segments, bounds, LogConfig(cleanup_policy=COMPACT, **config), NOW_MS)  # type: ignore[arg-type]


THREE = (Fake(0), Fake(10), Fake(20, size_bytes=200))


def test_all_but_the_active_segment_can_be_compacted() -> None:
    log_to_clean = decide(*THREE, active=30)
    assert log_to_clean == LogToClean(0, 30, clean_bytes=0, dirty_bytes=400, overdue_ms=0)
    assert log_to_clean.dirty_ratio == 1.0


def test_segments_below_the_cleaner_offset_are_clean() -> None:
    log_to_clean = decide(*THREE, active=30, cleaner=20)
    assert log_to_clean == LogToClean(20, 30, clean_bytes=200, dirty_bytes=200, overdue_ms=0)
    assert log_to_clean.dirty_ratio == 0.5
    assert decide(*THREE, active=30, cleaner=30).dirty_bytes == 0


@pytest.mark.parametrize(("stable", "uncleanable"), [(30, 30), (29, 20), (20, 20), (19, 10), (5, 0)])
def test_a_segment_above_the_last_stable_offset_is_not_compacted(stable: int, uncleanable: int) -> None:
    assert decide(*THREE, active=30, stable=stable).first_uncleanable_offset == uncleanable


@pytest.mark.parametrize("cleaner", [5, 120])
def test_a_cleaner_offset_outside_the_log_is_replaced_by_its_start(cleaner: int) -> None:
    assert decide(*THREE, start=10, active=30, cleaner=cleaner).first_dirty_offset == 10


def test_young_segments_are_kept_for_the_minimum_lag() -> None:
    segments = (
        Fake(0, largest_ms=NOW_MS - 501),
        Fake(10, largest_ms=NOW_MS - 500),
        Fake(20, largest_ms=NOW_MS - 499),
    )
    log_to_clean = decide(*segments, active=30, min_compaction_lag_ms=500)
    assert (log_to_clean.first_uncleanable_offset, log_to_clean.dirty_bytes) == (20, 200)


def test_the_maximum_lag_makes_a_log_due_whatever_its_dirty_ratio() -> None:
    segments = (Fake(0, size_bytes=10_000), Fake(10, first_ms=NOW_MS - 501), Fake(20, first_ms=NOW_MS - 700))
    config = LogConfig(cleanup_policy=COMPACT, max_compaction_lag_ms=500)
    late = decide(*segments, active=30, cleaner=10, max_compaction_lag_ms=500)
    assert late.overdue_ms == 200
    assert late.is_due(config)
    assert not decide(*segments, active=30, cleaner=10, max_compaction_lag_ms=700).is_due(config)
    assert not decide(*segments, active=30, cleaner=30, max_compaction_lag_ms=500).is_due(config)


@pytest.mark.parametrize(("ratio", "is_due"), [(0.49, True), (0.5, False), (1.0, False), (0.0, True)])
def test_a_log_is_due_above_its_dirty_ratio(ratio: float, is_due: bool) -> None:
    config = LogConfig(cleanup_policy=COMPACT, min_cleanable_dirty_ratio=ratio)
    assert decide(*THREE, active=30, cleaner=20).is_due(config) == is_due


def test_an_empty_log_is_never_due() -> None:
    log_to_clean = decide(active=0)
    assert (log_to_clean.dirty_ratio, log_to_clean.is_due(LogConfig(min_cleanable_dirty_ratio=0.0))) == (
        0.0,
        False,
    )


def grouped(*segments: Fake, **config: object) -> list[list[int]]:
    ends = [segment.base_offset for segment in segments[1:]] + [segments[-1].base_offset + 10]
    for segment, end in zip(segments, ends, strict=True):
        segment.end_offset = end
    groups = group_segments(segments, LogConfig(**config))  # type: ignore[arg-type]
    return [[segment.base_offset for segment in group] for group in groups]


def test_neighbours_are_grouped_up_to_the_size_of_a_segment() -> None:
    sizes = [Fake(0), Fake(10), Fake(20), Fake(30, size_bytes=250), Fake(40)]
    assert grouped(*sizes, segment_bytes=300) == [[0, 10, 20], [30], [40]]


def test_neighbours_are_grouped_up_to_the_size_of_an_index() -> None:
    segments = [Fake(10 * number, index_bytes=40) for number in range(5)]
    assert grouped(*segments, segment_index_bytes=100) == [[0, 10], [20, 30], [40]]


def test_a_group_has_offsets_that_fit_into_an_index() -> None:
    segments = [Fake(0), Fake(2**31 - 10), Fake(2**31), Fake(2**33, size_bytes=0)]
    assert grouped(*segments) == [[0, 2**31 - 10], [2**31, 2**33]]
