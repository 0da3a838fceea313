"""Lines from a file or a pipe, without holding up the event loop."""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator

CHUNK_BYTES = 256 * 1024


async def read_lines(descriptor: int) -> AsyncIterator[list[bytes]]:
    """Lines without their ends, as many at a time as came; the last one may lack its end."""
    rest = b""
    while chunk := await _read(descriptor):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]


async def _read(descriptor: int) -> bytes:
    """The next bytes. The thread is a daemon: it may wait for a terminal when the process is to end."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[bytes] = loop.create_future()

    def work() -> None:
        data, error = b"", None
        try:
            data = os.read(descriptor, CHUNK_BYTES)
        except OSError as failure:
            error = failure
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, outcome, data, error)

    threading.Thread(target=work, daemon=True).start()
    return await outcome


def _settle(outcome: asyncio.Future[bytes], data: bytes, error: OSError | None) -> None:
    if outcome.done():
        return
    if error is not None:
        outcome.set_exception(error)
    else:
        outcome.set_result(data)
