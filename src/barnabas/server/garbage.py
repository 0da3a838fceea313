"""When the garbage collector runs: it looks at a whole generation in one go, which holds up every client.

What survives a collection of the oldest generation is frozen: the collector never looks at it again. So a collection
takes as long as what was made since the last one, whatever the broker has in memory, and it is due as soon as that is
some ten thousand objects.

Frozen objects are freed like all others when nothing refers to them. Only cycles of them stay, so what lives long
(topics, logs, groups, connections) and what large requests make must be in none when it is let go of. Those that are
there in spite of it are freed once a day, by a collection of everything. It waits up to an hour for a moment in which
no client sends anything.
"""

import asyncio
import contextlib
import gc
from collections.abc import Callable, Iterator

from barnabas.telemetry.logs import get_logger

#: Objects made before the youngest are collected, how often that happens before the middle ones are (2 ms), and how
#: often that happens before the oldest are (10 ms).
YOUNG_COUNT, MIDDLE_COUNT, OLD_COUNT = 2_000, 10, 2

#: The collector never turns to the oldest generation by itself: that would be in the middle of a request.
_NEVER = 1 << 30

ALL_COLLECTED_EVERY_S = 24 * 3600.0
QUIET_S = 10.0
WAITS_FOR_QUIET_MAX = 360

_log = get_logger("barnabas.server")


@contextlib.contextmanager
def calm_collector(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Leave alone what there is now, and collect what is made within the block in short callbacks of `loop`."""

    def collected(phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 1 and _is_due():
            loop.call_soon_threadsafe(_collect_if_due)

    thresholds = gc.get_threshold()
    gc.set_threshold(YOUNG_COUNT, MIDDLE_COUNT, _NEVER)
    _collect()
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
    """Collect what is frozen, too, once a day, when nothing has been received for ten seconds or an hour has passed."""
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
