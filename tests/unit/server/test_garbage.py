"""The old generation is collected in small steps, and surviving objects are frozen."""

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import Self
from weakref import WeakSet

import pytest

from barnabas.server import garbage
from barnabas.server.garbage import (
    MIDDLE_COUNT,
    OLD_COUNT,
    YOUNG_COUNT,
    calm_collector,
    collect_all_when_quiet,
)
from support.loop import in_virtual_time, on_loop, turns


class Cyclic:
    """Refers to itself."""

    def __init__(self) -> None:
        self.itself: Self = self


@pytest.fixture(autouse=True)
def _frozen_as_before() -> Iterator[None]:
    yield
    gc.unfreeze()


def fill_old_generation() -> list[list[int]]:
    """Create as many long-lived objects as trigger a collection of the old generation."""
    return [[] for _ in range((YOUNG_COUNT + 1) * (MIDDLE_COUNT + 2) * (OLD_COUNT + 1))]


@on_loop
async def test_survivors_are_frozen_in_a_callback_of_the_loop() -> None:
    with calm_collector(asyncio.get_running_loop()):
        frozen_count = gc.get_freeze_count()
        assert frozen_count > 0  # what was there before
        kept = fill_old_generation()
        assert gc.get_freeze_count() == frozen_count
        await turns(2)
        assert gc.get_freeze_count() >= frozen_count + len(kept) // 2
        assert len(gc.get_objects(generation=2)) == 0


@on_loop
async def test_cycles_that_aged_before_they_became_garbage_are_collected() -> None:
    seen: WeakSet[Cyclic] = WeakSet()
    with calm_collector(asyncio.get_running_loop()):
        held = [Cyclic()]
        seen.update(held)
        gc.collect(1)
        held.clear()
        kept = fill_old_generation()
        await turns(2)
        assert not seen
    assert kept


def test_garbage_collection_has_its_former_settings_afterwards() -> None:
    before = gc.get_threshold(), len(gc.callbacks)
    loop = asyncio.new_event_loop()
    with calm_collector(loop):
        assert gc.get_threshold() != before[0]
    loop.close()
    assert (gc.get_threshold(), len(gc.callbacks)) == before


def test_frozen_cycles_are_collected_once_no_requests_arrive() -> None:
    received = iter([1, 2, 3, 3])
    assert_collected_after(2, lambda: next(received))


def test_a_busy_broker_collects_after_an_hour() -> None:
    received = count()
    assert_collected_after(garbage.WAITS_FOR_QUIET_MAX - 1, lambda: next(received))


def assert_collected_after(waits_count: int, received_bytes: Callable[[], int]) -> None:
    seen: WeakSet[Cyclic] = WeakSet([Cyclic()])
    gc.freeze()

    @in_virtual_time
    async def scenario() -> None:
        collecting = asyncio.create_task(collect_all_when_quiet(received_bytes))
        await asyncio.sleep(garbage.ALL_COLLECTED_EVERY_S + (waits_count + 0.5) * garbage.QUIET_S)
        assert seen
        await asyncio.sleep(garbage.QUIET_S)
        assert not seen
        collecting.cancel()
        with suppress(asyncio.CancelledError):
            await collecting

    scenario()
