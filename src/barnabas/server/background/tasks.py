"""Periodic tasks of a broker: retention, checkpoints, flushes by time, expirations, idle connections."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from barnabas.base.clock import Clock
from barnabas.log.files import REMOVAL_RETRY_MS, unlink_possible
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.dynamic_config import DynamicConfig
from barnabas.net.connections import Connections
from barnabas.quotas.manager import QuotaManager
from barnabas.replication.flusher import Flusher
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.telemetry.client_instances import ClientInstances
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import KafkaError

#: Interval of the checks for files, flushes and connections that are due.
TICK_MS = 1000

#: Interval of the expiration of quota and telemetry state of clients.
EXPIRE_CLIENTS_MS = 60_000

#: Limit of the producer ids in all partitions, which take some hundred bytes each, and the interval of its check.
PRODUCER_IDS_MAX = 1_000_000
BOUND_PRODUCERS_MS = 10_000

#: Partitions that are visited before the event loop continues: about a millisecond.
LOOKED_AT_COUNT = 1_000

_log = get_logger("barnabas.housekeeping")

BackgroundTask = Callable[[], Coroutine[Any, Any, None]]


class BackgroundTasks:
    """Runs periodic tasks until stopped. A task that fails is logged and runs again at its next time."""

    def __init__(
        self,
        config: DynamicConfig,
        clock: Clock,
        log_manager: LogManager,
        replicas: ReplicaManager,
        connections: Connections,
        flusher: Flusher,
        quotas: QuotaManager,
        client_instances: ClientInstances,
    ) -> None:
        self._config = config
        self._clock = clock
        self._log_manager = log_manager
        self._replicas = replicas
        self._connections = connections
        self._flusher = flusher
        self._quotas = quotas
        self._client_instances = client_instances
        self._loops: set[asyncio.Task[None]] = set()  #: one for each periodic task
        self._running: set[asyncio.Task[None]] = set()  #: present runs of periodic tasks
        #: (monotonic time in ms of their removal, files of deleted segments)
        self._deleted_files: list[tuple[int, list[Path]]] = []
        self._truncated = asyncio.Event()  #: a log was truncated since the last checkpoint

    def start(self) -> None:
        """Start the tasks that maintain logs, connections and clients."""
        integer = self._config.current.integer
        offset_checkpoint_ms = min(
            integer("log.flush.offset.checkpoint.interval.ms"),
            integer("log.flush.start.offset.checkpoint.interval.ms"),
            integer("replica.high.watermark.checkpoint.interval.ms"),
        )
        retention_ms = integer("log.retention.check.interval.ms")
        self.repeat(self.delete_old_segments, retention_ms, integer("log.initial.task.delay.ms"))
        self.repeat(self.checkpoint, max(offset_checkpoint_ms, 1))
        self._keep(self._checkpoint_truncations())
        self.repeat(self.tick, TICK_MS)
        self.repeat(self.expire_clients, EXPIRE_CLIENTS_MS)
        self.repeat(self.bound_producers, BOUND_PRODUCERS_MS)
        self.repeat(self.expire_producers, integer("producer.id.expiration.check.interval.ms"))

    async def stop(self) -> None:
        """Stop all tasks. Runs in progress are awaited, because their threads cannot be stopped."""
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        await asyncio.gather(*self._running, return_exceptions=True)

    def repeat(
        self,
        task: BackgroundTask,
        interval_ms: int,
        first_ms: int | None = None,
        *,
        is_cancelled: bool = False,
    ) -> None:
        """Run `task` every `interval_ms` until `stop`, the first time after `first_ms`.

        :param is_cancelled: Cancel a run in progress at the end, because it may wait for the metadata store for ever.
        """
        first_ms = interval_ms if first_ms is None else first_ms
        self._keep(self._repeat(task, interval_ms / 1000, first_ms / 1000, is_cancelled=is_cancelled))

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        loop = asyncio.get_running_loop().create_task(work)
        self._loops.add(loop)
        loop.add_done_callback(self._loops.discard)

    async def _repeat(
        self, task: BackgroundTask, interval_s: float, first_s: float, *, is_cancelled: bool
    ) -> None:
        await asyncio.sleep(first_s)
        while True:
            try:
                await (task() if is_cancelled else asyncio.shield(self._start(task)))
            except Exception:  # any error: a broker without these tasks fills its disks
                _log.exception("background task failed; it will be retried", task=task.__name__)
            await asyncio.sleep(interval_s)

    def _start(self, task: BackgroundTask) -> "asyncio.Task[None]":
        run = asyncio.get_running_loop().create_task(task())
        self._running.add(run)
        run.add_done_callback(self._running.discard)
        return run

    async def delete_old_segments(self) -> None:
        """Delete segments beyond their retention; remove their files after `file.delete.delay.ms`."""
        async for log in self._logs():
            if not log.config.is_deleted and log.log_start_offset == log.first_segment_offset:
                continue
            try:
                files = log.delete_old_segments(self._clock.wall_ms())
            except KafkaError as error:
                _log.error("retention failed", partition=str(log.topic_partition), why=error.message)
                continue
            if files:
                self.remove_later(log, files)
            await asyncio.sleep(0)

    def remove_later(self, log: PartitionLog, files: list[Path]) -> None:
        """Remove deleted files of `log` after `file.delete.delay.ms`."""
        due_ms = self._clock.monotonic_ms() + log.config.file_delete_delay_ms
        self._deleted_files.append((due_ms, files))

    def truncated(self, log: PartitionLog, files: list[Path]) -> None:
        """Remove files of truncated segments later, and checkpoint the lower recovery point soon.

        With the former one, recovery after a power failure would skip batches that were written since, and not flushed.
        """
        if files:
            self.remove_later(log, files)
        self._truncated.set()

    async def _checkpoint_truncations(self) -> None:
        while True:
            await self._truncated.wait()
            self._truncated.clear()
            await asyncio.shield(self._start(self.checkpoint))

    async def checkpoint(self) -> None:
        """Write the checkpoint files of recovery points, log start offsets and high watermarks."""
        await asyncio.to_thread(self._log_manager.checkpoint)

    async def tick(self) -> None:
        """Remove deleted files, flush logs and close idle connections that are due."""
        now_ms = self._clock.monotonic_ms()
        self._connections.close_idle()
        await self._remove_deleted_files(now_ms)
        await asyncio.to_thread(self._log_manager.deletions.remove_due, now_ms)
        waits = [
            self._flusher.when_flushed(log)
            async for log in self._logs()
            if log.local.flush_due(now_ms, log.log_end_offset, log.config.flush_ms)
        ]
        if waits:
            await asyncio.gather(*waits)

    async def _remove_deleted_files(self, now_ms: int) -> None:
        """Remove the files that are due, and retry later those that cannot be removed."""
        due = [path for due_ms, files in self._deleted_files if due_ms <= now_ms for path in files]
        if not due:
            return
        self._deleted_files = [entry for entry in self._deleted_files if entry[0] > now_ms]
        failed = await asyncio.to_thread(unlink_possible, due)
        if failed:
            path, error = next(iter(failed.items()))
            _log.warning(
                "cannot remove files; removal will be retried",
                files_count=len(failed),
                first=str(path),
                why=error.strerror,
            )
            self._deleted_files.append((now_ms + REMOVAL_RETRY_MS, list(failed)))

    async def expire_clients(self) -> None:
        self._quotas.expire()
        self._client_instances.expire()

    async def bound_producers(self) -> None:
        """Evict the longest idle producers if there are more than PRODUCER_IDS_MAX in all partitions."""
        counted = [(log, len(log.producers.states)) async for log in self._logs()]
        counts = [count for _, count in counted]
        if sum(counts) <= PRODUCER_IDS_MAX:
            return
        most = fair_bound(counts, PRODUCER_IDS_MAX)
        _log.warning("evicting producer ids: too many", count=sum(counts), limit=PRODUCER_IDS_MAX)
        for log, count in counted:
            if count > most:
                log.producers.states.evict(most)
                await asyncio.sleep(0)  # each takes some milliseconds

    async def expire_producers(self) -> None:
        """Remove producers without a write for `producer.id.expiration.ms`."""
        expiration_ms = self._config.current.integer("producer.id.expiration.ms")
        async for log in self._logs():
            log.producers.states.remove_expired(self._clock.wall_ms(), expiration_ms)

    async def _logs(self) -> AsyncIterator[PartitionLog]:
        """Yield the log of every partition, and let the event loop continue in between."""
        for number, partition in enumerate(list(self._replicas), 1):
            yield partition.log
            if number % LOOKED_AT_COUNT == 0:
                await asyncio.sleep(0)


def fair_bound(counts: Sequence[int], total_max: int) -> int:
    """Return the largest limit for each of `counts` with which their sum is at most `total_max`."""
    rest = total_max
    ascending = sorted(counts)
    for index, count in enumerate(ascending):
        share = rest // (len(ascending) - index)
        if count > share:
            return share
        rest -= count
    return ascending[-1] if ascending else total_max
