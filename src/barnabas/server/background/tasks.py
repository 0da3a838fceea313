"""What a broker does unasked: retention, checkpoints, flushes by time, expiries, idle connections."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from barnabas.base.clock import Clock
from barnabas.log.files import REMOVAL_RETRY_MS, unlink_what_can_be
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

#: How often what is due by a time of its own is looked for.
TICK_MS = 1000

#: How often clients that have gone are looked for.
FORGET_CLIENTS_MS = 60_000

#: Of all partitions together, some hundred bytes each, and how often they are counted.
PRODUCER_IDS_MAX = 1_000_000
BOUND_PRODUCERS_MS = 10_000

#: Partitions that are looked at in one go: a millisecond or so.
LOOKED_AT_COUNT = 1_000

_log = get_logger("barnabas.housekeeping")

Chore = Callable[[], Coroutine[Any, Any, None]]


class BackgroundTasks:
    """Runs each chore in its own interval until stopped; a chore that fails is logged and tried again."""

    def __init__(
        self,
        config: DynamicConfig,
        clock: Clock,
        directories: LogManager,
        replicas: ReplicaManager,
        connections: Connections,
        flusher: Flusher,
        quotas: QuotaManager,
        client_instances: ClientInstances,
    ) -> None:
        self._config = config
        self._clock = clock
        self._directories = directories
        self._replicas = replicas
        self._connections = connections
        self._flusher = flusher
        self._quotas = quotas
        self._client_instances = client_instances
        self._tasks: set[asyncio.Task[None]] = set()
        self._under_way: set[asyncio.Task[None]] = set()  #: chores that are at work now
        #: (monotonic milliseconds from which they may go, files of deleted segments)
        self._doomed: list[tuple[int, list[Path]]] = []

    def start(self) -> None:
        """Begin with all chores."""
        integer = self._config.current.integer
        offset_checkpoint_ms = min(
            integer("log.flush.offset.checkpoint.interval.ms"),
            integer("log.flush.start.offset.checkpoint.interval.ms"),
            integer("replica.high.watermark.checkpoint.interval.ms"),
        )
        retention_ms = integer("log.retention.check.interval.ms")
        self.repeat(self.delete_old_segments, retention_ms, integer("log.initial.task.delay.ms"))
        self.repeat(self.checkpoint, max(offset_checkpoint_ms, 1))
        self.repeat(self.tick, TICK_MS)
        self.repeat(self.forget_clients, FORGET_CLIENTS_MS)
        self.repeat(self.bound_producers, BOUND_PRODUCERS_MS)
        self.repeat(self.expire_producers, integer("producer.id.expiration.check.interval.ms"))

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something once, soon, that the next start does again if `stop` cuts it short."""

        async def run() -> None:
            await work

        self._keep(run())

    async def stop(self) -> None:
        """Stop all chores. One that is under way is finished first: its thread could not be stopped anyway."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def repeat(self, chore: Chore, interval_ms: int, first_ms: int | None = None) -> None:
        """Do a chore every `interval_ms` until `stop`, first after `first_ms`."""
        first_ms = interval_ms if first_ms is None else first_ms
        self._keep(self._run(chore, interval_ms / 1000, first_ms / 1000))

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, chore: Chore, interval_seconds: float, first_seconds: float) -> None:
        await asyncio.sleep(first_seconds)
        while True:
            try:
                await asyncio.shield(self._begin(chore))
            except Exception:  # whatever it is: without its chores a broker fills its disks
                _log.exception("background task failed; it will be retried", chore=chore.__name__)
            await asyncio.sleep(interval_seconds)

    def _begin(self, chore: Chore) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(chore())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def delete_old_segments(self) -> None:
        """Let go of old segments; their files follow after `file.delete.delay.ms`."""
        async for log in self._logs():
            if not log.config.is_deleted and log.log_start_offset == log.first_segment_offset:
                continue
            try:
                files = log.delete_old_segments(self._clock.wall_ms())
            except KafkaError as error:
                _log.error("retention has failed", partition=str(log.topic_partition), why=error.message)
                continue
            if files:
                self.remove_later(log, files)
            await asyncio.sleep(0)

    def remove_later(self, log: PartitionLog, files: list[Path]) -> None:
        """Remove files that `log` has let go of once `file.delete.delay.ms` has passed."""
        due_ms = self._clock.monotonic_ms() + log.config.file_delete_delay_ms
        self._doomed.append((due_ms, files))

    async def checkpoint(self) -> None:
        """Write down recovery points, log starts and high watermarks."""
        await asyncio.to_thread(self._directories.checkpoint)

    async def tick(self) -> None:
        """Remove files that are due, flush what is due by time, close idle connections."""
        now_ms = self._clock.monotonic_ms()
        self._connections.close_idle()
        await self._remove_doomed(now_ms)
        await asyncio.to_thread(self._directories.delete_due, now_ms)
        waits = [self._flusher.flushed(log) async for log in self._logs() if log.flush_due(now_ms)]
        if waits:
            await asyncio.gather(*waits)

    async def _remove_doomed(self, now_ms: int) -> None:
        """Remove the files that are due; those that cannot be removed now are due again after a while."""
        due = [path for due_ms, files in self._doomed if due_ms <= now_ms for path in files]
        if not due:
            return
        self._doomed = [entry for entry in self._doomed if entry[0] > now_ms]
        failed = await asyncio.to_thread(unlink_what_can_be, due)
        if failed:
            path, error = next(iter(failed.items()))
            _log.warning(
                "files cannot be removed and will be tried again",
                files_count=len(failed),
                first=str(path),
                reason=error.strerror,
            )
            self._doomed.append((now_ms + REMOVAL_RETRY_MS, list(failed)))

    async def forget_clients(self) -> None:
        """Forget what clients have taken and told that are long gone."""
        self._quotas.expire()
        self._client_instances.expire()

    async def bound_producers(self) -> None:
        """Forget idle producers where all partitions together remember too many; the largest give most."""
        counted = [(log, log.producers_count) async for log in self._logs()]
        counts = [count for _, count in counted]
        if sum(counts) <= PRODUCER_IDS_MAX:
            return
        most = fair_bound(counts, PRODUCER_IDS_MAX)
        _log.warning(
            "more producer ids are in use than are remembered", count=sum(counts), most=PRODUCER_IDS_MAX
        )
        for log, count in counted:
            if count > most:
                log.evict_producers(most)
                await asyncio.sleep(0)  # each takes some milliseconds

    async def expire_producers(self) -> None:
        """Forget producers that have been silent for `producer.id.expiration.ms`."""
        expiration_ms = self._config.current.integer("producer.id.expiration.ms")
        async for log in self._logs():
            log.remove_expired_producers(self._clock.wall_ms(), expiration_ms)

    async def _logs(self) -> AsyncIterator[PartitionLog]:
        """The log of every partition; others are served in between."""
        for number, partition in enumerate(list(self._replicas), 1):
            yield partition.log
            if number % LOOKED_AT_COUNT == 0:
                await asyncio.sleep(0)


def fair_bound(counts: Sequence[int], total_max: int) -> int:
    """The largest bound for each of `counts` under which their sum is at most `total_max`."""
    rest = total_max
    ascending = sorted(counts)
    for index, count in enumerate(ascending):
        share = rest // (len(ascending) - index)
        if count > share:
            return share
        rest -= count
    return ascending[-1] if ascending else total_max
