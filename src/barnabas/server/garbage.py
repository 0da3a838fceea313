"""Runs Python's garbage collector in short steps: a collection of a whole generation would delay every client.

What is there when the broker starts is frozen, and so is what survives a collection of the oldest generation: the
collector does not visit it again. A collection takes as long as the objects since the last one require, independent of
the size of the heap, and it runs after some ten thousand new objects.

Frozen objects are freed like all others when their last reference goes. Only cycles of frozen objects stay. Therefore
long-lived objects (topics, logs, groups, connections) and those of large requests must not be in cycles when they are
dropped. Cycles that remain are freed once a day, by a full collection, which waits up to an hour until no client sends
anything.
"""

import asyncio
import contextlib
import gc
from collections.abc import Callable, Iterator

from barnabas.telemetry.logs import get_logger

#: New objects before a young collection, young collections before a middle one (2 ms), and middle collections before an
#: old one (10 ms).
YOUNG_COUNT, MIDDLE_COUNT, OLD_COUNT = 2_000, 10, 2

#: The collector does not collect the oldest generation by itself, because that would happen in the middle of a request.
_NEVER = 1 << 30

ALL_COLLECTED_EVERY_S = 24 * 3600.0
QUIET_S = 10.0
WAITS_FOR_QUIET_MAX = 360

_log = get_logger("barnabas.server")


@contextlib.contextmanager
def calm_collector(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Freeze the present objects, and collect those made within the block in short callbacks of `loop`."""

    def collected(phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 1 and _is_due():
            loop.call_soon_threadsafe(_collect_if_due)

    thresholds = gc.get_threshold()
    gc.set_threshold(YOUNG_COUNT, MIDDLE_COUNT, _NEVER)
    gc.freeze()
    gc.callbacks.append(collected)
    try:
        yield
    finally:
        gc.callbacks.remove(collected)
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def _is_due() -> bool:
    return gc.get_count()[2] >= OLD_COUNT


def _collect_if_due() -> None:
    if _is_due():
        _collect()


def _collect() -> int:
    collected_count = gc.collect()
    gc.freeze()
    return collected_count


async def collect_all_when_quiet(received_bytes: Callable[[], int]) -> None:
    """Run a full collection once a day, after ten seconds without received bytes, or at most an hour later."""
    while True:
        await asyncio.sleep(ALL_COLLECTED_EVERY_S)
        before = None
        for _ in range(WAITS_FOR_QUIET_MAX):
            if before == (before := received_bytes()):
                break
            await asyncio.sleep(QUIET_S)
        gc.unfreeze()
        collected_count = _collect()
        _log.info("collected garbage", collected_count=collected_count)
