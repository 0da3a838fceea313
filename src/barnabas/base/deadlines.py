"""Deadlines of many waits with few timers."""

import asyncio
from collections import deque

#: From this size on, waits that have ended are removed whenever a queue has doubled. A power of 2.
CLEANED_COUNT_MIN = 1024


class Deadlines:
    """Ends futures with TimeoutError. Futures with the same timeout share a timer: that of the first one."""

    def __init__(self) -> None:
        self._queues: dict[
            float, deque[tuple[float, asyncio.Future[None]]]
        ] = {}  #: by timeout, each in order
        self.expired_count = 0

    def limit(self, future: "asyncio.Future[None]", timeout_ms: float) -> None:
        """End the future with TimeoutError if it is not done after this time."""
        loop = asyncio.get_running_loop()
        queue = self._queues.get(timeout_ms)
        if queue is None:
            queue = self._queues[timeout_ms] = deque()
            loop.call_later(timeout_ms / 1000, self._expire, timeout_ms)
        count = len(queue)
        if count >= CLEANED_COUNT_MIN and count.bit_count() == 1:
            waiting = [entry for entry in queue if not entry[1].done()]
            queue.clear()
            queue.extend(waiting)
        queue.append((loop.time() + timeout_ms / 1000, future))

    def _expire(self, timeout_ms: float) -> None:
        loop = asyncio.get_running_loop()
        queue = self._queues[timeout_ms]
        while queue and (queue[0][1].done() or queue[0][0] <= loop.time()):
            _, future = queue.popleft()
            if not future.done():
                self.expired_count += 1
                future.set_exception(TimeoutError())
                future.exception()  # retrieved, because the request may have ended with its connection
        if queue:
            loop.call_at(queue[0][0], self._expire, timeout_ms)
        else:
            del self._queues[timeout_ms]

    def statistics(self) -> dict[str, int]:
        return {"waits_count": sum(map(len, self._queues.values())), "expired_count": self.expired_count}
