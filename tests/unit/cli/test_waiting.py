"""Waiting for completion, on a fake clock."""

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
    """Return how many milliseconds it waits when each call reports so many left."""
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


def test_completed_work_is_not_awaited() -> None:
    assert waited(0, 0) == 0


def test_calls_are_repeated_with_pauses_until_nothing_is_left() -> None:
    assert 0 < waited(10, 7, 3, 5, 0) < 1_000


def test_at_the_timeout_the_remaining_work_is_reported() -> None:
    with pytest.raises(CommandError, match="moves: not complete after 2 s, 4 remaining") as raised:
        waited(2, *[4] * 99)
    assert "--wait" in raised.value.hint
