"""Wait for conditions."""

import asyncio
import time
from collections.abc import Callable

WAIT_S = 60.0
PAUSE_S = 0.01


def until(holds: Callable[[], object]) -> None:
    """Wait until a condition holds; fail after a minute."""
    deadline_s = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline_s, "what was waited for did not come"
        time.sleep(PAUSE_S)


async def reached(holds: Callable[[], object]) -> None:
    """Do the same on the event loop."""
    deadline_s = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline_s, "what was waited for did not come"
        await asyncio.sleep(0)
