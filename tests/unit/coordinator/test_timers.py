"""Timers that are set, moved and cancelled."""

import asyncio

from barnabas.coordinator.result import Timer, TimerKey
from barnabas.coordinator.timers import Timers
from support.loop import in_virtual_time

A, B = ("a",), ("b",)


class Seen:
    """Timers, and the time in ms when each expired."""

    def __init__(self) -> None:
        self.timers = Timers(self._come)
        self.came: list[tuple[TimerKey, int]] = []

    def _come(self, key: TimerKey) -> None:
        self.came.append((key, self.now_ms))

    @property
    def now_ms(self) -> int:
        return round(asyncio.get_running_loop().time() * 1000)

    def set(self, key: TimerKey, delay_ms: int | None) -> None:
        self.timers.apply(Timer(key, delay_ms))

    async def until(self, ms: int) -> None:
        await asyncio.sleep((ms - self.now_ms) / 1000)


@in_virtual_time
async def test_each_timer_expires_once() -> None:
    seen = Seen()
    seen.set(A, 100)
    seen.set(B, 0)
    await seen.until(1000)
    assert seen.came == [(B, 0), (A, 100)]
    assert len(seen.timers) == 0


@in_virtual_time
async def test_a_timer_moved_later_repeatedly_expires_at_the_last_time() -> None:
    seen = Seen()
    for ms in range(0, 1000, 30):
        await seen.until(ms)
        seen.set(A, 100)
        assert len(seen.timers) == 1
    await seen.until(2000)
    assert seen.came == [(A, 990 + 100)]


@in_virtual_time
async def test_a_timer_moved_earlier_expires_then() -> None:
    seen = Seen()
    seen.set(A, 500)
    await seen.until(50)
    seen.set(A, 1000)
    seen.set(A, 100)
    await seen.until(2000)
    assert seen.came == [(A, 150)]


@in_virtual_time
async def test_a_cancelled_timer_does_not_expire_even_if_it_was_moved() -> None:
    seen = Seen()
    seen.set(A, 100)
    seen.set(A, 300)
    seen.set(B, 200)
    await seen.until(150)
    seen.set(A, None)
    seen.set(A, None)
    assert len(seen.timers) == 1
    seen.timers.cancel_all()
    await seen.until(1000)
    assert seen.came == []


@in_virtual_time
async def test_a_timer_may_be_set_again_when_it_expires() -> None:
    seen = Seen()
    seen.set(A, 100)
    await seen.until(150)
    seen.set(A, 100)
    await seen.until(1000)
    assert seen.came == [(A, 100), (A, 250)]
