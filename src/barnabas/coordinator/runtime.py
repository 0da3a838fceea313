"""All shards of one internal topic that this broker leads: found by key, loaded and closed as leaders change."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, NamedTuple

from barnabas.base.clock import Clock
from barnabas.coordinator.counts import CoordinatorCounts
from barnabas.coordinator.partition_of import partition_of
from barnabas.coordinator.result import CoordinatorResult, Pending, ResponseT
from barnabas.coordinator.runner import ShardRunner, ShardState, ShardT
from barnabas.coordinator.shard_log import ShardLog
from barnabas.metadata.configs import GROUP_CONFIGS
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import StoreChange
from barnabas.metadata.topics import PARTITION_STATES, TOPICS
from barnabas.replication.flusher import Flusher
from barnabas.replication.partition import Partition
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.wire.coordinator_records.serde import Serde
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.control import EndTransactionMarker

#: Nouns whose changes may bring a shard here or take it away.
_LEADERSHIP = frozenset({TOPICS.name, PARTITION_STATES.name})

#: Nouns whose changes shards may have to act on.
_FOLLOWED = frozenset({TOPICS.name, GROUP_CONFIGS.name})


class Totals(NamedTuple):
    """All shards of a coordinator together."""

    shards: Counter[ShardState]  #: by state
    load_ms_max: int
    pending_count: int
    timers_count: int


class CoordinatorRuntime(Generic[ShardT]):
    """Finds the shard of a key, and follows the image: it is a listener of the metadata writer."""

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
    ) -> None:
        """`make_shard` gives an empty shard for a partition's index; `do` does what shards want done outside."""
        self.topic = topic
        self._make_shard = make_shard
        self._serde = serde
        self._replicas = replicas
        self._flusher = flusher
        self._clock = clock
        self._compression = compression
        self._do = do
        self.counts = CoordinatorCounts()
        self._image = MetadataImage()
        self._partitions_count = 0  #: of the topic; 0 while there is none
        self._runners: dict[int, ShardRunner[ShardT]] = {}
        self._epochs: dict[int, int] = {}  #: leader epoch in which a shard was loaded
        self._loading: set[asyncio.Task[None]] = set()

    # Following the cluster

    def load(self, image: MetadataImage) -> None:
        """Begin with what this broker leads; called once, when the replicas are there."""
        self._image = image
        self._elect()

    async def apply(
        self, before: MetadataImage, after: MetadataImage, changes: tuple[StoreChange, ...]
    ) -> None:
        """Follow one commit: the listener of the metadata writer, behind the replicas'."""
        self._image = after
        record_types = {change.key.partition("/")[0] for change in changes}
        if not record_types.isdisjoint(_LEADERSHIP):
            self._elect()
        if not record_types.isdisjoint(_FOLLOWED):
            for runner in tuple(self._runners.values()):
                if runner.shard.follows_cluster:
                    runner.run_event(lambda shard, step: shard.on_metadata_update(step, before, after))

    def _elect(self) -> None:
        """Load the shards of partitions that this broker has come to lead, close the others."""
        topic = self._image.topics.get(self.topic)
        self._partitions_count = topic.partition_count if topic is not None else 0
        led = {partition.index: partition for partition in self._led()}
        for index in tuple(self._runners):
            partition = led.get(index)
            if partition is None or partition.leader_epoch != self._epochs[index]:
                self._runners.pop(index).close("the leader has changed")
        for index, partition in led.items():
            if index not in self._runners:
                self._start(index, partition)

    def _led(self) -> list[Partition]:
        found = (self._replicas.find(self.topic, index) for index in range(self._partitions_count))
        return [partition for partition in found if partition is not None and partition.is_leader]

    def _start(self, index: int, partition: Partition) -> None:
        log = ShardLog(partition, self._serde, self._flusher, self._compression)
        runner = ShardRunner(self._make_shard(index), log, self._clock, self._do, self.counts)
        self._runners[index], self._epochs[index] = runner, partition.leader_epoch
        task = asyncio.get_running_loop().create_task(runner.load())
        self._loading.add(task)
        task.add_done_callback(self._loading.discard)

    async def stop(self) -> None:
        """Close all shards; nothing is lost by that."""
        for runner in self._runners.values():
            runner.close("the broker stops")
        self._runners.clear()
        for task in self._loading:
            task.cancel()
        await asyncio.gather(*self._loading, return_exceptions=True)

    # Events

    def runner(self, key: str) -> ShardRunner[ShardT]:
        """Who coordinates a key.

        :raises KafkaError: NOT_COORDINATOR when another broker coordinates the key, or nobody does: the client is to
            ask who it is, which makes the internal topic where it is not there.
        """
        count = self._partitions_count
        found = self._runners.get(partition_of(key, count)) if count else None
        if found is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return found

    def ask(
        self,
        key: str,
        event: Callable[[ShardT, CoordinatorResult, Pending[ResponseT]], None],
        label: str = "",
    ) -> Coroutine[Any, Any, ResponseT]:
        """Hand a request to the shard of a key; awaiting this gives its answer, or raises as `ShardRunner.ask`.

        :raises KafkaError: As `runner`.
        """
        return self.runner(key).ask(event, label or key)

    def query(self, key: str, question: Callable[[ShardT, int], ResponseT]) -> Coroutine[Any, Any, ResponseT]:
        """What the shard of a key says to a question on its state; awaiting this raises as `ShardRunner.query`.

        :raises KafkaError: As `runner`.
        """
        return self.runner(key).query(question)

    async def query_all(
        self,
        question: Callable[[ShardT, int], ResponseT],
        checkpoint: Callable[[], Awaitable[None]] | None = None,
    ) -> list[ResponseT]:
        """What each shard of this broker says; between shards others are served at a `checkpoint`.

        :raises KafkaError: COORDINATOR_LOAD_IN_PROGRESS while one is being loaded.
        """
        answers = []
        for runner in tuple(self._runners.values()):
            answers.append(await runner.query(question))
            if checkpoint is not None:
                await checkpoint()
        return answers

    def end_transaction(self, topic: str, index: int, marker: EndTransactionMarker) -> None:
        """A marker was appended to a partition, perhaps to one of ours."""
        runner = self._runners.get(index) if topic == self.topic else None
        if runner is not None:
            runner.end_transaction(marker)

    @property
    def is_loading(self) -> bool:
        """Whether some shard is not loaded yet."""
        return any(runner.state is ShardState.LOADING for runner in self._runners.values())

    @property
    def shards(self) -> list[ShardT]:
        """Those that are loaded."""
        return [each.shard for each in self._runners.values() if each.state is ShardState.ACTIVE]

    def totals(self) -> Totals:
        """What there is, in all shards together."""
        runners = self._runners.values()
        return Totals(
            shards=Counter(runner.state for runner in runners),
            load_ms_max=max((runner.load_ms for runner in runners), default=0),
            pending_count=sum(runner.pending_count for runner in runners),
            timers_count=sum(runner.timers_count for runner in runners),
        )

    def statistics(self) -> dict[str, object]:
        """Each shard's, by the index of its partition."""
        return {str(index): runner.statistics() for index, runner in sorted(self._runners.items())}
