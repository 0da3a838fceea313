"""Keep a process running: start it again when it ends, and stop it within a time limit."""

import asyncio
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable

#: Pauses before a process that has ended is started again; the last one repeats.
RESTART_PAUSES_S = (0.0, 0.5, 2.0, 10.0)

#: A process that has run for so long had no problem with its start.
STABLE_S = 60.0

#: How long a process may take to stop before it is killed.
STOP_TIMEOUT_S = 60.0

#: The exit code of a process that has failed.
EXIT_FAILED = 1

#: The exit code of a process whose configuration or data is not valid.
EXIT_CANNOT_START = 2


async def keep_running(
    run_once: Callable[[], Awaitable[int]], stopping: asyncio.Event, on_end: Callable[[int, float], None]
) -> int:
    """Run a process again and again until `stopping` is set; return the exit code of its last run.

    If the first run ends with `EXIT_CANNOT_START`, `stopping` is set.

    :param run_once: Starts the process, waits for its end, and returns its exit code.
    :param on_end: Called with the exit code and the pause in seconds before the next run.
    """
    loop = asyncio.get_running_loop()
    failures_count = 0
    while True:
        started_s = loop.time()
        code = await run_once()
        if stopping.is_set():
            return code
        if code == EXIT_CANNOT_START and failures_count == 0:
            stopping.set()
            return code
        failures_count = 1 if loop.time() - started_s > STABLE_S else failures_count + 1
        pause_s = RESTART_PAUSES_S[min(failures_count, len(RESTART_PAUSES_S)) - 1]
        on_end(code, pause_s)
        if await is_set_within(stopping, pause_s):
            return code


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def stop_process(process: Process) -> bool:
    """Stop a process; return False if it had to be killed."""
    if process.returncode is not None:
        return True
    process.terminate()
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        return False
    return True
