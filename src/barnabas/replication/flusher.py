"""Group fsync: one fdatasync completes all appends that arrived while the previous one ran."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from barnabas.log.partition_log import PartitionLog
from barnabas.telemetry import names
from barnabas.telemetry.logs import get_logger
from barnabas.telemetry.metrics import MetricsRegistry

_log = get_logger("barnabas.replication")


class Flusher:
    """Flushes logs in threads, so that the event loop never waits for a disk.

    Each log directory has its own thread, so that a slow disk delays only its own logs.
    """

    def __init__(self) -> None:
        self._lanes: dict[Path, _Lane] = {}

    def when_flushed(self, log: PartitionLog) -> "asyncio.Future[None]":
        """Return a future that completes when everything that `log` contains now is flushed."""
        directory = log.directory.parent
        lane = self._lanes.get(directory)
        if lane is None:
            lane = self._lanes[directory] = _Lane()
        return lane.when_flushed(log)

    def flush_soon(self, log: PartitionLog) -> None:
        """Flush a log; an error takes it offline, and concerns those who wait for the flush."""
        self.when_flushed(log).add_done_callback(lambda future: future.exception())

    @property
    def flushes_count(self) -> int:
        """Number of successful flushes."""
        return sum(lane.flushes_count for lane in self._lanes.values())

    async def complete(self) -> None:
        """Wait until nothing is to be flushed."""
        await asyncio.gather(*(lane.complete() for lane in self._lanes.values()))

    async def close(self) -> None:
        """Complete all requested flushes."""
        await asyncio.gather(*(lane.close() for lane in self._lanes.values()))

    def register_metrics(self, registry: MetricsRegistry) -> None:
        registry.add_metric(names.FLUSHES, lambda: [({}, self.flushes_count)])

    def statistics(self) -> dict[str, int]:
        """Return the number of flushes, and of logs that wait for one."""
        waiting = sum(lane.waiting_logs_count for lane in self._lanes.values())
        return {"flushes_count": self.flushes_count, "waiting_logs_count": waiting}


class _Lane:
    """Flushes the logs of one directory, one after the other."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="log-flush")
        self._waiting: dict[PartitionLog, list[asyncio.Future[None]]] = {}
        self._running: asyncio.Task[None] | None = None
        self.flushes_count = 0

    @property
    def waiting_logs_count(self) -> int:
        """Number of logs whose next flush has not begun."""
        return len(self._waiting)

    def when_flushed(self, log: PartitionLog) -> "asyncio.Future[None]":
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
            flushed = await asyncio.get_running_loop().run_in_executor(self._thread, log.sync)
        except Exception as error:  # every waiting append must get the error
            if isinstance(error, OSError):
                log.take_offline(
                    error
                )  # the kernel drops pages that it could not write, so a later flush proves nothing
            for future in futures:
                if not future.done():
                    future.set_exception(error)
            return
        log.mark_flushed(flushed)
        self.flushes_count += 1
        try:
            log.on_flushed()
        except Exception:  # the records are on disk nevertheless
            _log.exception("cannot advance a high watermark", partition=str(log.topic_partition))
        for future in futures:
            if not future.done():
                future.set_result(None)

    async def complete(self) -> None:
        if self._running is not None:
            await asyncio.wait({self._running})

    async def close(self) -> None:
        await self.complete()
        self._thread.shutdown()
