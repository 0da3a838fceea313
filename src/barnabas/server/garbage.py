"""When the garbage collector runs: it goes through all objects of a generation in one go, which holds up every client.

What a broker has loaded at its start stays, so the collector need not look at it. Young objects are collected often and
quickly. The oldest generation, which large requests fill, is collected while nothing waits for a turn.
"""

import asyncio
import gc

from barnabas.base.turns import Turns
from barnabas.telemetry.logs import get_logger

#: Objects made before the youngest are collected, and how often that happens before the middle ones are (about 2 ms).
YOUNG_COUNT, MIDDLE_COUNT = 2_000, 10

#: The collector itself turns to the oldest generation only after that many collections of the middle one: not while a
#: large request is under way.
OLD_COUNT = 10_000

COLLECTED_EVERY_S = 600.0
RETRIED_S = 5.0

_log = get_logger("barnabas.server")


def calm_collector() -> None:
    """Leave alone what there is now, and collect rarely what has become old since."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_COUNT, MIDDLE_COUNT, OLD_COUNT)


async def collect_when_quiet(turns: Turns) -> None:
    """Collect the oldest generation every ten minutes, at a moment in which no large request is under way."""
    while True:
        await asyncio.sleep(COLLECTED_EVERY_S)
        while turns.statistics()["waiting_count"]:
            await asyncio.sleep(RETRIED_S)
        collected_count = gc.collect()
        _log.debug("collected garbage", collected_count=collected_count)
