"""Group fsync: one fdatasync answers every append that came while the one before it ran."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from barnabas.log.partition_log import PartitionLog


class Flusher:
    """Makes logs durable in a thread, so that the event loop never waits for a disk."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="log-flush")
        self._waiting: dict[PartitionLog, list[asyncio.Future[None]]] = {}
        self._running: asyncio.Task[None] | None = None
        self.flushes_count = 0

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

    def statistics(self) -> dict[str, int]:
        """How many flushes have been, and for how many logs somebody waits."""
        return {"flushes_count": self.flushes_count, "waiting_logs_count": len(self._waiting)}
