"""Staying until something is done, with a clock that stands still unless it is waited."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.base.clock import ManualClock
from barnabas.cli.support.failures import CommandError
from barnabas.cli.support.waiting import until_done
from barnabas.client.core.retry import Retry


def waited(wait_s: float, *left: int) -> float:
    """For how many milliseconds it is waited while so much is left each time that is asked."""
    clock = ManualClock()

    async def sleep(seconds: float) -> None:
        clock.advance(seconds * 1000)

    cluster: Any = SimpleNamespace(retry=Retry(clock=clock, sleep=sleep))
    answers: Iterator[int] = iter(left)

    async def ask() -> int:
        return next(answers)

    began_ms = clock.monotonic_ms()
    asyncio.run(until_done(cluster, ask, wait_s, "moves"))
    return clock.monotonic_ms() - began_ms


def test_what_is_done_is_not_waited_for() -> None:
    assert waited(0, 0) == 0


def test_it_is_asked_again_with_pauses_until_nothing_is_left() -> None:
    assert 0 < waited(10, 7, 3, 5, 0) < 1_000


def test_who_has_waited_long_enough_is_told_what_is_left() -> None:
    with pytest.raises(CommandError, match="moves: not complete after 2 s, 4 remaining") as raised:
        waited(2, *[4] * 99)
    assert "--wait" in raised.value.hint
