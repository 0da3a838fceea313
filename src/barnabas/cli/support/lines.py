"""Read lines from a file or a pipe without blocking the event loop."""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator

CHUNK_BYTES = 256 * 1024


async def read_lines(descriptor: int) -> AsyncIterator[list[bytes]]:
    """Yield lists of lines without line ends, as they arrive; the last line may lack its end."""
    rest = b""
    while chunk := await _read(descriptor):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]


async def _read(descriptor: int) -> bytes:
    """Return the next bytes. The thread is a daemon, as it may still wait for a terminal when the process exits."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[bytes] = loop.create_future()

    def work() -> None:
        data, error = b"", None
        try:
            data = os.read(descriptor, CHUNK_BYTES)
        except OSError as failure:
            error = failure
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits for the future
            loop.call_soon_threadsafe(_complete, future, data, error)

    threading.Thread(target=work, daemon=True).start()
    return await future


def _complete(future: asyncio.Future[bytes], data: bytes, error: OSError | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(data)
