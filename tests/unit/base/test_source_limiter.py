from barnabas.base.clock import ManualClock
from barnabas.base.source_limiter import (
    OTHER_PRINCIPALS,
    SOURCES_MAX,
    SUMMARY_COUNT_MAX,
    WINDOW_MS,
    LeftOut,
    SourceLimiter,
    SourceLimits,
)

LIMITS = SourceLimits(principal=2, address=3, total=5)


def test_entries_are_limited_by_principal_by_address_and_in_total() -> None:
    limiter = SourceLimiter(ManualClock(), LIMITS)
    assert [limiter.admits("alice", "a") for _ in range(3)] == [True, True, False]
    assert [limiter.admits(name, "a") for name in ("bob", "carol")] == [True, False]
    assert [limiter.admits("alice", address) for address in "bcd"] == [True, True, False]
    assert limiter.statistics() == {"written": 5, "left_out": 3, "sources": 10}


def test_a_new_window_begins_after_a_minute_with_a_summary_of_the_last_one() -> None:
    clock = ManualClock()
    limiter = SourceLimiter(clock, LIMITS)
    for _ in range(5):
        limiter.admits("alice", "a")
    assert limiter.end_window() == []
    clock.advance(WINDOW_MS)
    assert limiter.end_window() == [LeftOut("alice", "a", 3)]
    assert limiter.end_window() == []
    assert limiter.admits("alice", "a")


def test_a_summary_is_short_and_complete_for_any_number_of_sources() -> None:
    clock = ManualClock()
    limiter = SourceLimiter(clock, LIMITS)
    total = 3 * SOURCES_MAX
    admitted_count = sum(limiter.admits(f"user{number}", f"host{number}") for number in range(total))
    assert limiter.statistics()["sources"] <= SOURCES_MAX + 1
    clock.advance(WINDOW_MS)
    summary = limiter.end_window()
    assert len(summary) == SUMMARY_COUNT_MAX
    assert summary[-1][:2] == (OTHER_PRINCIPALS, "")
    assert sum(left_out.entries_count for left_out in summary) == total - admitted_count


def test_invented_principals_at_an_address_beyond_its_limit_are_counted_together() -> None:
    limiter = SourceLimiter(ManualClock(), LIMITS)
    for number in range(3 * SOURCES_MAX):
        limiter.admits(f"user{number}", "a")
    assert limiter.statistics()["sources"] <= SOURCES_MAX + 1
