import time

import pytest

from barnabas.base.clock import Clock, ManualClock, SystemClock


def test_the_system_clock_counts_milliseconds_since_the_epoch() -> None:
    before = int(time.time() * 1000)
    now_ms = SystemClock().wall_ms()
    assert before <= now_ms <= int(time.time() * 1000) + 1


def test_the_monotonic_clock_never_goes_back() -> None:
    clock = SystemClock()
    seen = [clock.monotonic_ms() for _ in range(1000)]
    assert seen == sorted(seen)


def test_a_manual_clock_moves_only_when_advanced() -> None:
    clock: Clock = ManualClock(5)
    assert (clock.wall_ms(), clock.monotonic_ms()) == (5, 5)
    assert isinstance(clock, ManualClock)
    clock.advance(7)
    assert (clock.wall_ms(), clock.monotonic_ms()) == (12, 12)


def test_a_manual_clock_cannot_go_back() -> None:
    with pytest.raises(AssertionError):
        ManualClock().advance(-1)
