"""The shards of an internal topic that this broker leads: found by key, loaded and closed as leaders change."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, NamedTuple

from barnabas.base import eager
from barnabas.base.clock import Clock
from barnabas.coordinator.counts import CoordinatorCounts
from barnabas.coordinator.partition_of import partition_of
from barnabas.coordinator.result import CoordinatorResult, Pending, ResponseT
from barnabas.coordinator.runner import WRITE_TIMEOUT_MS, ShardRunner, ShardState, ShardT
from barnabas.coordinator.shard_log import ShardLog
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.configs import GROUP_CONFIGS
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import PARTITION_STATES, TOPICS
from barnabas.replication.flusher import Flusher
from barnabas.replication.partition import Partition
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.wire.coordinator_records.serde import Serde
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.control import EndTransactionMarker

#: Record types whose changes may move a shard to or from this broker.
_LEADERSHIP = (TOPICS, PARTITION_STATES)

#: Record types whose changes shards may have to handle.
_FOLLOWED = (TOPICS, GROUP_CONFIGS)


class Totals(NamedTuple):
    """Sums over all shards of a coordinator."""

    shards: Counter[ShardState]  #: by state
    load_ms_max: int
    pending_count: int
    timers_count: int


class CoordinatorRuntime(Generic[ShardT]):
    """Finds the shard of a key, and follows the image as a listener of `MetadataWriter`."""

    def __init__(
        self,
        topic: str,
        make_shard: Callable[[int], ShardT],
        serde: Serde,
        replicas: ReplicaManager,
        flusher: Flusher,
        clock: Clock,
        compression: Compression = Compression.NONE,
        do: Callable[[Any], None] = lambda effect: None,
        write_timeout_ms: int = WRITE_TIMEOUT_MS,
    ) -> None:
        """:param make_shard: Returns an empty shard for a partition's index.
        :param do: Does what results request outside the shard.
        :param write_timeout_ms: How long a request waits until its records are stored.
        """
        self.topic = topic
        self._make_shard = make_shard
        self._serde = serde
        self._replicas = replicas
        self._flusher = flusher
        self._clock = clock
        self._compression = compression
        self._do = do
        self._write_timeout_ms = write_timeout_ms
        self.counts = CoordinatorCounts()
        self._image = MetadataImage()
        self._partitions_count = 0  #: of the topic; 0 if it does not exist
        self._runners: dict[int, ShardRunner[ShardT]] = {}
        #: partition, and its leader epoch, of which each shard was loaded
        self._loaded_from: dict[int, tuple[Partition, int]] = {}
        self._loading: set[asyncio.Task[None]] = set()
        self._is_stopped = False

    # Following the image

    def load(self, image: MetadataImage) -> None:
        """Load what this broker leads; called once, after the replicas are loaded."""
        self._image = image
        self._elect()

    async def apply(self, before: MetadataImage, after: MetadataImage, changed: ChangedKeys) -> None:
        """Apply one commit, after the replicas have."""
        self._image = after
        if changed.contains_any_of(_LEADERSHIP):
            self._elect()
        if changed.contains_any_of(_FOLLOWED):
            for runner in tuple(self._runners.values()):
                if runner.state is ShardState.ACTIVE and runner.shard.needs_metadata_updates:
                    await runner.run_steps(runner.shard.on_metadata_update(before, after))

    def _elect(self) -> None:
        """Load the shards of partitions that this broker leads now, and close the others."""
        if self._is_stopped:  # commits still arrive while the broker stops
            return
        topic = self._image.topics.get(self.topic)
        self._partitions_count = topic.partition_count if topic is not None else 0
        led = {partition.index: partition for partition in self._led()}
        for index in tuple(self._runners):
            partition = led.get(index)
            if partition is None or (partition, partition.leader_epoch) != self._loaded_from[index]:
                del self._loaded_from[index]
                self._runners.pop(index).close("the leader has changed")
        for index, partition in led.items():
            if index not in self._runners:
                self._start(index, partition)

    def _led(self) -> list[Partition]:
        partitions = (self._replicas.find(self.topic, index) for index in range(self._partitions_count))
        return [partition for partition in partitions if partition is not None and partition.is_leader]

    def _start(self, index: int, partition: Partition) -> None:
        log = ShardLog(partition, self._serde, self._flusher, self._compression)
        runner = ShardRunner(
            self._make_shard(index), log, self._clock, self._do, self.counts, self._write_timeout_ms
        )
        self._runners[index], self._loaded_from[index] = runner, (partition, partition.leader_epoch)
        task = asyncio.get_running_loop().create_task(self._load(runner, self._image))
        self._loading.add(task)
        task.add_done_callback(self._loading.discard)

    async def _load(self, runner: ShardRunner[ShardT], before: MetadataImage) -> None:
        await runner.load()
        if runner.state is ShardState.ACTIVE:
            await runner.run_steps(runner.shard.catch_up(before))

    async def stop(self) -> None:
        """Close all shards, and load no more."""
        self._is_stopped = True
        for runner in self._runners.values():
            runner.close("the broker stops")
        self._runners.clear()
        for task in self._loading:
            task.cancel()
        await asyncio.gather(*self._loading, return_exceptions=True)

    # Events

    def runner(self, key: str) -> ShardRunner[ShardT]:
        """Return the runner of the shard that coordinates a key.

        :raises KafkaError: NOT_COORDINATOR if another broker coordinates the key, or none: the client then sends
            FindCoordinator, which creates the internal topic if necessary.
        """
        count = self._partitions_count
        runner = self._runners.get(partition_of(key, count)) if count else None
        if runner is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return runner

    def handle_request(
        self,
        key: str,
        event: Callable[[ShardT, CoordinatorResult, Pending[ResponseT]], None],
        label: str = "",
    ) -> Coroutine[Any, Any, ResponseT]:
        """Call `ShardRunner.handle_request` of the shard of a key.

        :raises KafkaError: As `runner`.
        """
        return self.runner(key).handle_request(event, label or key)

    def query(
        self, key: str, run_query: Callable[[ShardT, int], ResponseT]
    ) -> Coroutine[Any, Any, ResponseT]:
        """Call `ShardRunner.query` of the shard of a key.

        :raises KafkaError: As `runner`.
        """
        return self.runner(key).query(run_query)

    async def query_all(
        self, run_query: Callable[[ShardT, int], ResponseT], checkpoint: Callable[[], Awaitable[None]]
    ) -> list[ResponseT]:
        """Return the result of a query from each shard of this broker; there is a `checkpoint` between shards.

        :raises KafkaError: COORDINATOR_LOAD_IN_PROGRESS while one is loading.
        """
        responses: list[ResponseT] = []
        for response in (await self.query_each(run_query, checkpoint)).values():
            if isinstance(response, KafkaError):
                raise response
            responses.append(response)
        return responses

    async def query_each(
        self,
        run_query: Callable[[ShardT, int], ResponseT],
        checkpoint: Callable[[], Awaitable[None]],
        timeout_s: float | None = None,
    ) -> dict[int, ResponseT | KafkaError]:
        """Return the result or error of a query from each shard of this broker, by the index of its partition.

        All shards wait at the same time until everything that their results depend on is written: as long as a request,
        or for `timeout_s`; what takes longer is COORDINATOR_NOT_AVAILABLE.
        """
        responses: dict[int, ResponseT | KafkaError] = {}
        waiting: dict[int, asyncio.Future[ResponseT | KafkaError]] = {}
        try:
            for index, runner in tuple(self._runners.items()):
                response = eager.start(_response_or_error(runner.query(run_query)))
                if isinstance(response, asyncio.Future):
                    waiting[index] = response
                else:
                    responses[index] = response
                await checkpoint()
            if waiting:
                await asyncio.wait(waiting.values(), timeout=timeout_s)
            return responses | {index: _response_by_now(task) for index, task in waiting.items()}
        finally:
            for task in waiting.values():
                task.cancel()

    def end_transaction(self, topic: str, index: int, marker: EndTransactionMarker) -> None:
        """Handle a transaction marker that was appended to any partition."""
        runner = self._runners.get(index) if topic == self.topic else None
        if runner is not None:
            runner.end_transaction(marker)

    @property
    def is_loading(self) -> bool:
        """Whether any shard is loading."""
        return any(runner.state is ShardState.LOADING for runner in self._runners.values())

    @property
    def shards(self) -> list[ShardT]:
        """The loaded shards."""
        return [runner.shard for runner in self._runners.values() if runner.state is ShardState.ACTIVE]

    def totals(self) -> Totals:
        runners = self._runners.values()
        return Totals(
            shards=Counter(runner.state for runner in runners),
            load_ms_max=max((runner.load_ms for runner in runners), default=0),
            pending_count=sum(runner.pending_count for runner in runners),
            timers_count=sum(runner.timers_count for runner in runners),
        )

    def statistics(self) -> dict[str, object]:
        """Return the statistics of each shard, by the index of its partition."""
        return {str(index): runner.statistics() for index, runner in sorted(self._runners.items())}


async def _response_or_error(query: Awaitable[ResponseT]) -> ResponseT | KafkaError:
    try:
        return await query
    except KafkaError as error:
        return error.without_traceback()


def _response_by_now(task: "asyncio.Future[ResponseT | KafkaError]") -> ResponseT | KafkaError:
    if task.done():
        return task.result()
    return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The records are not stored yet.")
