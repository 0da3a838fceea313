"""Requests that wait until a watermark of a partition reaches their offsets."""

import asyncio

from barnabas.wire.errors import ErrorCode, KafkaError

#: From this size on, waits that have ended are removed whenever the list has doubled. A power of 2.
CLEANED_COUNT_MIN = 1024


class WatermarkWaits:
    def __init__(self) -> None:
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def add(self, offset: int) -> "asyncio.Future[None]":
        """Return a future that completes when the watermark reaches `offset`."""
        count = len(self._waiting)
        if count >= CLEANED_COUNT_MIN and count.bit_count() == 1:
            self._waiting = [entry for entry in self._waiting if not entry[1].done()]
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, future))
        return future

    def complete(self, watermark: int) -> None:
        """Complete the futures whose offsets the watermark has reached."""
        for offset, future in self._waiting:
            if offset <= watermark and not future.done():
                future.set_result(None)
        self._waiting = [entry for entry in self._waiting if entry[0] > watermark]

    def fail(self, code: ErrorCode, message: str) -> None:
        """End all waits with an error."""
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(KafkaError(code, message))
                future.exception()  # retrieved, because the request may have ended with its connection
        self._waiting.clear()

    def __len__(self) -> int:
        return len(self._waiting)
