"""Requests changes of in-sync replicas for the partitions that this broker leads."""

import asyncio
from collections.abc import Callable
from functools import partial

from barnabas.base.clock import Clock
from barnabas.metadata.election_rules import ElectionRules
from barnabas.metadata.isr import IsrChange, decide_alter_isr
from barnabas.metadata.woken_task import WokenTask
from barnabas.metadata.writer import MetadataWriter
from barnabas.replication.partition import Partition
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.telemetry.logs import get_logger

#: Partitions to check for lagging followers before the event loop continues.
CHECKED_PER_YIELD_COUNT = 500

#: More changes are decided in another thread: each takes about 50 us.
DECIDED_AT_ONCE_MAX = 100

#: After which time to try again if the store failed, or a change was refused.
RETRY_S = 0.5

_log = get_logger("barnabas.replication")


class IsrManager:
    """Adds followers as soon as they have caught up, and removes those that lag for `replica.lag.time.max.ms`."""

    def __init__(
        self,
        broker_id: int,
        replicas: ReplicaManager,
        metadata: MetadataWriter,
        clock: Clock,
        lag_ms_max: Callable[[], int],
        rules: ElectionRules,
    ) -> None:
        self._broker_id = broker_id
        self._replicas = replicas
        self._metadata = metadata
        self._clock = clock
        self._lag_ms_max = lag_ms_max
        self._rules = rules
        self._queue: dict[Partition, list[int]] = {}  #: partition -> lagging followers to remove
        self._requested: dict[Partition, IsrChange] = {}  #: not committed or refused yet
        self._requesting = WokenTask(
            "isr-changes",
            self._request_changes,
            retry_s=RETRY_S,
            log=_log,
            warning="cannot change in-sync replicas; retrying",
        )
        self._looking: asyncio.Task[None] | None = None
        self.changes_count = 0
        replicas.on_caught_up = self._enqueue

    def start(self) -> None:
        self._requesting.start()
        self._looking = asyncio.get_running_loop().create_task(self._look_for_lag(), name="isr-lag")

    async def stop(self) -> None:
        await self._requesting.stop()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    def _enqueue(self, partition: Partition) -> None:
        self._queue.setdefault(partition, [])
        self._requesting.wake()

    async def _request_changes(self) -> None:
        """Request what is in the queue.

        If the store fails, an earlier attempt may still be committed: the same is requested again, and until then the
        high watermark respects it.
        """
        while self._queue or self._requested:
            if not self._requested:
                self._requested = self._take_requests()
            requests = list(self._requested.values())
            decide = partial(
                decide_alter_isr, broker_id=self._broker_id, requested=requests, rules=self._rules
            )
            is_large = len(requests) > DECIDED_AT_ONCE_MAX
            self.changes_count += await self._metadata.write(decide, is_large=is_large)
            # An earlier attempt may be in the image, and not in the partitions yet: then nothing was left to change.
            await self._metadata.wait_for_revision(self._metadata.image.revision)
            requested, self._requested = self._requested, {}
            for partition in requested:  # those that were committed have a new state already
                partition.cancel_isr_request()
                self._try_again_later(partition)

    def _take_requests(self) -> dict[Partition, IsrChange]:
        requests = {}
        for partition in tuple(self._queue)[: self._metadata.partitions_max]:
            lagging = self._queue.pop(partition)
            if partition.is_leader and (change := partition.request_isr(lagging)) is not None:
                requests[partition] = change
        return requests

    def _try_again_later(self, partition: Partition) -> None:
        """Ask again if a follower was refused, for example because the metadata did not show yet that it is back."""
        if partition.is_leader and partition.caught_up_followers():
            asyncio.get_running_loop().call_later(RETRY_S, self._enqueue, partition)

    async def _look_for_lag(self) -> None:
        while True:
            lag_ms_max = self._lag_ms_max()
            await asyncio.sleep(lag_ms_max / 2000)
            now_ms = self._clock.monotonic_ms()
            for number, partition in enumerate(list(self._replicas), 1):
                if number % CHECKED_PER_YIELD_COUNT == 0:
                    await asyncio.sleep(0)
                if not partition.is_leader or len(partition.isr) == 1:
                    continue
                if lagging := partition.lagging_followers(now_ms, lag_ms_max):
                    _log.warning(
                        "followers lag; removing them from the in-sync replicas",
                        partition=f"{partition.topic}-{partition.index}",
                        followers=lagging,
                    )
                    self._queue[partition] = lagging
                    self._requesting.wake()

    def statistics(self) -> dict[str, int]:
        return {"changes_count": self.changes_count, "waiting_count": len(self._queue) + len(self._requested)}
