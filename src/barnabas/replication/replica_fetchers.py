"""Assigns the partitions that this broker follows to a fetcher for each leader."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicIdPartition
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import NO_LEADER, PARTITION_STATES, TOPICS
from barnabas.replication.broker_client import BrokerClient
from barnabas.replication.flusher import Flusher
from barnabas.replication.partition import Partition
from barnabas.replication.replica_fetcher import FetchSettings, ReplicaFetcher
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.replication.throttle import ReplicationThrottle

#: How long the election of another leader is expected after the connection to one was lost.
ELECTION_WAIT_S = 2.0


class ReplicaFetchers:
    """Follows the image as a listener of the metadata writer, after the replica manager."""

    def __init__(
        self,
        broker_id: int,
        replicas: ReplicaManager,
        client: BrokerClient,
        clock: Clock,
        settings: Callable[[], FetchSettings],
        throttle: ReplicationThrottle,
        flusher: Flusher,
    ) -> None:
        """:param client: Its connections are used for fetches only, because these wait for records."""
        self._broker_id = broker_id
        self._replicas = replicas
        self._client = client
        self._clock = clock
        self._settings = settings
        self._throttle = throttle
        self._flusher = flusher
        self._fetchers: dict[int, ReplicaFetcher] = {}  #: by leader
        self._assigned: dict[TopicIdPartition, int] = {}  #: partition -> its leader
        self._is_started = False
        self.broker_epoch = -1  #: of this broker, which fetches contain (KIP-903)
        #: called with the files of truncated segments, which are to be removed; to be set before `start`
        self.on_truncated: Callable[[PartitionLog, list[Path]], None] = lambda log, files: None

    def start(self, broker_epoch: int) -> None:
        """Begin to copy, once this broker is registered; later, use its new epoch."""
        self.broker_epoch = broker_epoch
        if not self._is_started:
            self._is_started = True
            for partition in self._replicas:
                self._assign(TopicIdPartition(partition.topic_id, partition.index), partition)

    async def stop(self) -> None:
        self._is_started = False
        await asyncio.gather(*(fetcher.stop() for fetcher in self._fetchers.values()))
        self._fetchers.clear()
        self._assigned.clear()

    async def apply(self, before: MetadataImage, after: MetadataImage, changed: ChangedKeys) -> None:
        """Apply the changes of one commit."""
        if not self._is_started:
            return
        for name in changed.of(TOPICS):
            for topic in filter(None, (before.topics.get(name), after.topics.get(name))):
                for number in range(topic.partition_count):
                    self._update(TopicIdPartition(topic.topic_id, number))
            await asyncio.sleep(0)
        for key in changed.of(PARTITION_STATES):
            topic_id, _, index = key.partition("/")
            self._update(TopicIdPartition(bytes.fromhex(topic_id), int(index)))
        idle = [leader for leader, fetcher in self._fetchers.items() if fetcher.is_idle]
        await asyncio.gather(*(self._fetchers.pop(leader).stop() for leader in idle))

    def follow_opened(self, replicas: Iterable[TopicIdPartition]) -> None:
        """Begin to copy replicas whose logs were created after the commit that changed their partitions."""
        if self._is_started:
            for replica in replicas:
                self._update(replica)

    def _update(self, key: TopicIdPartition) -> None:
        self._assign(key, self._replicas.find_by_id(*key))

    def _assign(self, key: TopicIdPartition, partition: Partition | None) -> None:
        if partition is not None and partition.leader == self._broker_id:
            # Followers have the same gap then (see `log.gap`). Before its registration, however, a broker may have an
            # old leader epoch, of which it has lost records.
            partition.log.gap_offset = None
        if partition is not None and partition.leader in (NO_LEADER, self._broker_id):
            partition = None  # it is not copied
        earlier = self._assigned.get(key)
        if earlier is not None and (partition is None or partition.leader != earlier):
            self._fetchers[earlier].remove(key)
            del self._assigned[key]
        if partition is not None:
            self._assigned[key] = partition.leader
            self._fetcher(partition.leader).add(partition)

    def _fetcher(self, leader: int) -> ReplicaFetcher:
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            fetcher = self._fetchers[leader] = ReplicaFetcher(
                self._broker_id,
                leader,
                self._client,
                self._clock,
                self._settings,
                self._throttle,
                self._flusher,
                lambda: self.broker_epoch,
                self.on_truncated,
            )
            fetcher.start()
        return fetcher

    def expects_election(self) -> bool:
        """Whether a leader that this broker follows may just have died, so that another one will be elected."""
        now_s = asyncio.get_running_loop().time()
        return any(
            (failed_s := self._client.failed_s(leader)) is not None and now_s - failed_s < ELECTION_WAIT_S
            for leader, fetcher in self._fetchers.items()
            if not fetcher.is_idle
        )

    def statistics(self) -> dict[str, object]:
        fetchers = {str(leader): fetcher.statistics() for leader, fetcher in sorted(self._fetchers.items())}
        return {**fetchers, **self._throttle.statistics()}
