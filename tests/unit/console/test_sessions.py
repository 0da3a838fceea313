"""Sessions and login attempts."""

from itertools import count
from types import SimpleNamespace
from typing import Any

from barnabas.base.clock import ManualClock
from barnabas.console.login_throttle import ADDRESS_FAILURES_MAX, USER_FAILURES_MAX, WINDOW_MS, LoginAttempts
from barnabas.console.sessions import Notice, Sessions

ACCESS: Any = SimpleNamespace(principal="User:alice")


def sessions(clock: ManualClock, sessions_max: int = 10) -> Sessions:
    numbers = count()
    return Sessions(
        clock, lambda: f"t{next(numbers)}", idle_ms=100, lifetime_ms=250, sessions_max=sessions_max
    )


def test_a_session_is_found_by_its_key_only() -> None:
    kept = sessions(ManualClock())
    session = kept.open(ACCESS, own_access=True)
    assert kept.find(session.key) is session
    assert kept.find(session.csrf) is None
    assert kept.find(None) is None
    kept.close(session)
    assert kept.find(session.key) is None
    assert session.key not in repr(session)


def test_a_session_ends_when_idle_and_use_extends_it() -> None:
    clock = ManualClock()
    kept = sessions(clock)
    session = kept.open(ACCESS, own_access=True)
    clock.advance(99)
    assert kept.find(session.key) is session
    clock.advance(99)
    assert kept.find(session.key, use=False) is session
    clock.advance(1)
    assert kept.find(session.key) is None
    assert kept.take_expired() == [session]
    assert kept.statistics() == {"open": 0, "opened": 1, "expired": 1}


def test_a_session_ends_after_its_lifetime_despite_use() -> None:
    clock = ManualClock()
    kept = sessions(clock)
    session = kept.open(ACCESS, own_access=True)
    for _ in range(4):
        clock.advance(60)
        assert kept.find(session.key) is session
    clock.advance(10)
    assert kept.find(session.key) is None


def test_beyond_the_limit_the_least_recently_used_session_ends() -> None:
    clock = ManualClock()
    kept = sessions(clock, sessions_max=2)
    first, second, third = (kept.open(ACCESS, own_access=False) for _ in range(3))
    clock.advance(1)
    kept.find(first.key)
    assert kept.take_expired() == [second]
    assert kept.take_all() == [first, third]


def test_notices_are_shown_once() -> None:
    session = sessions(ManualClock()).open(ACCESS, own_access=False)
    for number in range(7):
        session.note("good", str(number))
    assert session.take_notices() == [Notice("good", str(number)) for number in range(2, 7)]
    assert session.take_notices() == []


def test_a_user_is_throttled_after_some_failures_and_others_are_not() -> None:
    clock = ManualClock()
    attempts = LoginAttempts(clock)
    for _ in range(USER_FAILURES_MAX):
        assert attempts.wait_s("alice", "here") == 0
        attempts.record_attempt("alice", "here")
        clock.advance(1_000)
    assert attempts.wait_s("alice", "elsewhere") == WINDOW_MS // 1000 - USER_FAILURES_MAX
    assert attempts.wait_s("bob", "here") == 0
    clock.advance(WINDOW_MS)
    assert attempts.wait_s("alice", "here") == 0


def test_an_address_is_throttled_after_more_failures() -> None:
    attempts = LoginAttempts(ManualClock())
    for number in range(ADDRESS_FAILURES_MAX):
        attempts.record_attempt(f"user {number}", "here")
    assert attempts.wait_s("somebody", "here") == WINDOW_MS // 1000
    assert attempts.wait_s("somebody", "elsewhere") == 0
    assert attempts.statistics()["refused"] == 1


def test_old_failures_are_removed_when_there_are_many() -> None:
    clock = ManualClock()
    attempts = LoginAttempts(clock)
    for number in range(5_000):
        attempts.record_attempt(f"user {number}", f"address {number}")
    clock.advance(WINDOW_MS)
    attempts.record_attempt("alice", "here")
    assert attempts.statistics()["counted"] == 2


def test_an_attempt_counts_from_its_start_so_that_concurrent_ones_do_not_help() -> None:
    attempts = LoginAttempts(ManualClock())
    for _ in range(USER_FAILURES_MAX):
        attempts.record_attempt("alice", "here")
    assert attempts.wait_s("alice", "here") > 0
    attempts.succeeded("alice", "here")
    assert attempts.wait_s("alice", "here") == 0


def test_successful_attempts_leave_no_state() -> None:
    attempts = LoginAttempts(ManualClock())
    attempts.record_attempt("alice", "here")
    attempts.succeeded("alice", "here")
    assert attempts.statistics() == {"counted": 0, "refused": 0}


def test_expired_attempts_are_removed_when_there_are_many() -> None:
    clock = ManualClock()
    attempts = LoginAttempts(clock)
    attempts.record_attempt("alice", "here")
    clock.advance(WINDOW_MS)
    assert attempts.wait_s("alice", "here") == 0
    for number in range(5_001):
        attempts.record_attempt(f"user {number}", f"address {number}")
    assert attempts.statistics()["counted"] == 10_002


def test_the_principal_with_most_sessions_loses_its_least_recently_used_one() -> None:
    clock = ManualClock()
    kept = sessions(clock, sessions_max=3)
    alices = kept.open(ACCESS, own_access=True)
    bob: Any = SimpleNamespace(principal="User:bob")
    bobs = []
    for _ in range(3):
        clock.advance(1)
        bobs.append(kept.open(bob, own_access=True))
    assert kept.take_expired() == bobs[:1]
    assert (kept.holds(alices), kept.holds(bobs[0]), kept.holds(bobs[1])) == (True, False, True)
