"""Group fsync: one fdatasync answers every append that came while the one before it ran."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from barnabas.log.partition_log import PartitionLog


class Flusher:
    """Makes logs durable in threads, so that the event loop never waits for a disk.

    Each log directory has a thread of its own: a slow disk delays only what lies on it.
    """

    def __init__(self) -> None:
        self._lanes: dict[Path, _Lane] = {}

    def flushed(self, log: PartitionLog) -> "asyncio.Future[None]":
        """A future for everything that `log` holds now to be on disk."""
        place = log.directory.parent
        lane = self._lanes.get(place)
        if lane is None:
            lane = self._lanes[place] = _Lane()
        return lane.flushed(log)

    @property
    def flushes_count(self) -> int:
        """How many flushes have succeeded."""
        return sum(lane.flushes_count for lane in self._lanes.values())

    async def close(self) -> None:
        """Finish what has been asked for."""
        await asyncio.gather(*(lane.close() for lane in self._lanes.values()))

    def statistics(self) -> dict[str, int]:
        """How many flushes have been, and for how many logs somebody waits."""
        waiting = sum(lane.waiting_logs_count for lane in self._lanes.values())
        return {"flushes_count": self.flushes_count, "waiting_logs_count": waiting}


class _Lane:
    """The logs of one directory, flushed one after the other."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="log-flush")
        self._waiting: dict[PartitionLog, list[asyncio.Future[None]]] = {}
        self._running: asyncio.Task[None] | None = None
        self.flushes_count = 0

    @property
    def waiting_logs_count(self) -> int:
        """Logs whose next flush has not begun."""
        return len(self._waiting)

    def flushed(self, log: PartitionLog) -> "asyncio.Future[None]":
        """A future for everything that `log` holds now to be on disk."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(log, []).append(future)
        if self._running is None:
            self._running = loop.create_task(self._run(), name="log-flush")
        return future

    async def _run(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, {}
            await asyncio.gather(*(self._flush(log, futures) for log, futures in batch.items()))
        self._running = None

    async def _flush(self, log: PartitionLog, futures: list[asyncio.Future[None]]) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, log.flush)
        except Exception as error:  # whoever waits must hear of it, whatever it is
            if isinstance(error, OSError):
                log.take_offline(
                    error
                )  # the kernel forgets pages that it could not write: no later flush is true
            for future in futures:
                if not future.done():
                    future.set_exception(error)
            return
        self.flushes_count += 1
        for future in futures:
            if not future.done():
                future.set_result(None)

    async def close(self) -> None:
        """Finish what has been asked for."""
        if self._running is not None:
            await self._running
        self._thread.shutdown()
