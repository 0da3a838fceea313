"""All partitions of this broker: opened, changed and deleted to match the metadata image."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from barnabas.base.deadlines import Deadlines
from barnabas.base.ids import TopicIdPartition, TopicPartition, uuid_to_text
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directory import LogDirectory
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.log.trash.trash import TrashedLogs
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.configs import TOPIC_CONFIGS
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import (
    DELETED_TOPICS,
    PARTITION_STATES,
    TOPICS,
    TopicImage,
    unknown_topic,
    unknown_topic_id,
)
from barnabas.replication.leader_statistics import LeaderStatistics
from barnabas.replication.partition import Partition
from barnabas.telemetry import names
from barnabas.telemetry.logs import get_logger
from barnabas.telemetry.metrics import MetricsRegistry, Values
from barnabas.telemetry.names import MetricName
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.control import EndTransactionMarker

#: Returns the log config of a topic name and its overrides.
LogConfigs = Callable[[str, Mapping[str, str]], LogConfig]

#: What is done with the log of a replica that this broker no longer has.
Removal = Callable[[TopicPartition], None]

#: Replicas to open, close or change before yielding to the event loop; opening one takes 0.5 to 4 ms.
OPENED_PER_YIELD_COUNT = 2

#: Topics to reconfigure before yielding to the event loop; one with its own configs takes 0.1 ms.
RECONFIGURED_PER_YIELD_COUNT = 20

_log = get_logger("barnabas.replication")


class ReplicaManager:
    """Finds partitions for requests, and follows the metadata image as a listener of the metadata writer."""

    def __init__(
        self,
        broker_id: int,
        log_manager: LogManager,
        log_configs: LogConfigs,
        flush_soon: Callable[[PartitionLog], None] = lambda log: None,
    ) -> None:
        """:param flush_soon: Flushes a log whose records consumers must not read before (flush.messages)."""
        self._flush_soon = flush_soon
        self._broker_id = broker_id
        self.log_manager = log_manager
        self.trash = TrashedLogs(log_manager)
        self.leader_statistics = LeaderStatistics(broker_id)
        self._deadlines = Deadlines()
        self._log_configs = log_configs
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._by_id: dict[tuple[bytes, int], Partition] = {}
        self._offline: set[TopicIdPartition] = set()  #: replicas of this broker in failed directories
        self._lost: set[TopicIdPartition] = set()  #: without a log, although the cluster may expect records
        self._deleted: dict[bytes, None] = {}  #: ids of deleted topics that are not reported yet
        self._image = MetadataImage()
        #: whether consumers may be sent to followers (replica.selector.class)
        self.serves_consumers_of_followers = False
        #: called when there are new `deleted_topics`
        self.on_deleted: Callable[[], None] = lambda: None
        #: called when a replica of this broker has no usable log
        self.on_missing_log: Callable[[], None] = lambda: None
        #: called when a follower that is not in sync has caught up with a partition of this broker
        self.on_caught_up: Callable[[Partition], None] = lambda partition: None
        #: called when this broker begins to lead a partition that has followers
        self.on_led: Callable[[Partition], None] = lambda partition: None
        #: called after a transaction marker was appended to a partition, including those of `__consumer_offsets`
        self.on_transaction_marker: Callable[[TopicPartition, EndTransactionMarker], None] = (
            lambda partition, marker: None
        )

    def partition(self, topic: str, index: int) -> Partition:
        """Return the partition of a topic name.

        :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER for one on other brokers,
            KAFKA_STORAGE_ERROR for one on a failed disk.
        """
        partition = self._partitions.get((topic, index))
        if partition is None:
            raise self._not_here(self._image.topics.get(topic), index, unknown_topic(topic))
        return partition

    def partition_by_id(self, topic_id: bytes, index: int) -> Partition:
        """Return the partition of a topic id.

        :raises KafkaError: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION for an index that the topic lacks, or
            NOT_LEADER_OR_FOLLOWER for one on other brokers; KAFKA_STORAGE_ERROR for one on a failed disk.
        """
        partition = self._by_id.get((topic_id, index))
        if partition is None:
            topic = self._image.topic_by_id(topic_id)
            raise self._not_here(topic, index, unknown_topic_id(uuid_to_text(topic_id)))
        return partition

    def find_by_id(self, topic_id: bytes, index: int) -> Partition | None:
        """Return the partition of a topic id, if this broker has it."""
        return self._by_id.get((topic_id, index))

    def find(self, topic: str, index: int) -> Partition | None:
        """Return the partition of a topic name, if this broker has it."""
        return self._partitions.get((topic, index))

    def _not_here(self, topic: TopicImage | None, index: int, unknown: KafkaError) -> KafkaError:
        if topic is None:
            return unknown
        if not 0 <= index < topic.partition_count:
            message = f"Topic '{topic.name}' has partitions 0 to {topic.partition_count - 1}, not {index}."
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
        if (topic.topic_id, index) in self._offline:
            message = f"The disk of {topic.name}-{index} failed."
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        message = f"Broker {self._broker_id} does not have a replica of {topic.name}-{index}."
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, message)

    def when_replicated(
        self, partition: Partition, offset: int, timeout_ms: int
    ) -> "asyncio.Future[None] | None":
        """Return the future of `Partition.when_replicated`; after a timeout it ends with TimeoutError."""
        replicated = partition.when_replicated(offset)
        if replicated is not None:
            self._deadlines.limit(replicated, timeout_ms)
        return replicated

    def offline_replicas(self) -> frozenset[TopicIdPartition]:
        """Return the replicas of this broker whose log directory has failed."""
        failed = (key for key, partition in self._by_id.items() if partition.log.failure is not None)
        return frozenset({*self._offline, *(TopicIdPartition(*key) for key in failed)})

    def lost_replicas(self) -> frozenset[TopicIdPartition]:
        """Return the replicas of this broker without a log, which is not created before that is reported."""
        return frozenset(self._lost)

    async def open_empty(self, lost: Iterable[TopicIdPartition]) -> None:
        """Create the logs of lost replicas, after the cluster knows that they are empty."""
        self._lost.difference_update(lost)
        for topic_id in sorted({replica.topic_id for replica in lost}):
            if (topic := self._image.topic_by_id(topic_id)) is not None:
                await self._open_in_slices(topic)

    def deleted_topics(self) -> list[bytes]:
        """Return the ids of deleted topics whose logs this broker has renamed, and which it has not reported yet."""
        return list(self._deleted)

    def mark_reported(self, topic_ids: Iterable[bytes]) -> None:
        """Forget deleted topics, after they are reported."""
        for topic_id in topic_ids:
            self._deleted.pop(topic_id, None)

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions.values())

    def load(self, image: MetadataImage, lost: Iterable[TopicIdPartition] = ()) -> None:
        """Open the partitions of all logs found on disk, once, before any request is served.

        Logs of deleted topics are deleted; logs of topics that the cluster does not know are renamed as strays, but not
        deleted. Assigned replicas without a log are created, unless they may be in an offline directory, or are `lost`:
        `open_empty` creates these. If this start fails before the cluster knows of them, the next one finds them again.
        """
        self._image = image
        self._lost.update(lost)
        for log in list(self.log_manager.logs.values()):
            name, index = log.topic_partition
            topic = image.topics.get(name)
            if topic is not None and topic.topic_id == log.topic_id and self._is_held(topic, index):
                continue
            row = "" if log.topic_id is None else log.topic_id.hex()
            if row in image.deleted_topics or row in image.trashed_topics:
                self.log_manager.schedule_deletion(log.topic_partition, keep=row in image.trashed_topics)
            else:
                _log.warning(
                    "a log belongs to no replica of this broker; its directory is renamed to -stray and kept",
                    partition=str(log.topic_partition),
                )
                self.log_manager.rename_stray(log.topic_partition)
        for topic in image.topics.values():
            if self.log_manager.any_offline:
                self._offline.update(self._missing(topic))
            self._open(topic, range(topic.partition_count))
        self._deleted = dict.fromkeys(topic.topic_id for topic in image.deleted_topics.values())

    async def apply(self, before: MetadataImage, after: MetadataImage, changed: ChangedKeys) -> None:
        """Apply the changes of one commit; this is the listener of the metadata writer.

        Yields to the event loop regularly, because opening many replicas takes long.
        """
        self._image = after
        for name in changed.of(TOPICS):
            deleted_topic, topic = before.topics.get(name), after.topics.get(name)
            if deleted_topic is not None and (topic is None or topic.topic_id != deleted_topic.topic_id):
                await self._close_topic(deleted_topic, self._removal(after, deleted_topic))
        for name in changed.of(TOPICS):
            topic = after.topics.get(name)
            if topic is not None:
                if _is_restored(before, topic):
                    await self.restore(after, topic)
                await self._open_in_slices(topic)
        for name in changed.of(TOPIC_CONFIGS):
            self._reconfigure(name, self._log_config(name))
            await asyncio.sleep(0)
        for key in changed.of(PARTITION_STATES):
            self._update_state(key, before)
            await asyncio.sleep(0)
        await self._follow_deletions(before, after, changed)

    async def _follow_deletions(
        self, before: MetadataImage, after: MetadataImage, changed: ChangedKeys
    ) -> None:
        """Remove the logs of topics that were purged from the trash; have all deleted topics reported."""
        deleted = [
            bytes.fromhex(key)
            for key in changed.of(DELETED_TOPICS)
            if key in after.deleted_topics and key not in before.deleted_topics
        ]
        if purged := [topic_id for topic_id in deleted if topic_id.hex() in before.trashed_topics]:
            await asyncio.to_thread(self.trash.purge, purged)
        if deleted:
            self._deleted.update(dict.fromkeys(deleted))
            self.on_deleted()

    async def restore(self, image: MetadataImage, topic: TopicImage) -> None:
        """Restore a topic's logs from the trash; a replica without a log is not created before that is reported."""
        self._image = image
        trashed_logs = await asyncio.to_thread(self.trash.of_topic, topic.topic_id)
        config = self._log_config(topic.name)
        restored: list[tuple[LogDirectory, PartitionLog]] = []
        for index in range(topic.partition_count):
            if not self._is_held(topic, index):
                continue
            tp = TopicPartition(topic.name, index)
            log: PartitionLog | None = None
            if index in trashed_logs:
                directory, trashed = trashed_logs[index]
                log = await asyncio.to_thread(self.trash.reopen, directory, trashed, tp, config)
            if log is None:
                self._report_not_restored(topic, index)
                continue
            self.trash.register_log(directory, log)
            restored.append((directory, log))
        await asyncio.to_thread(self.trash.finish_restoring, restored)

    def _report_not_restored(self, topic: TopicImage, index: int) -> None:
        replica = TopicIdPartition(topic.topic_id, index)
        if self.log_manager.any_offline:  # the log may be there; the next start completes the restoration
            _log.error("an undeleted partition is offline", topic=topic.name, partition=index)
            self._offline.add(replica)
        else:
            _log.error(
                "no trashed log found for an undeleted partition; empty until it is copied from another replica",
                topic=topic.name,
                partition=index,
            )
            self._lost.add(replica)
        self.on_missing_log()

    async def _open_in_slices(self, topic: TopicImage) -> None:
        for first in range(0, topic.partition_count, OPENED_PER_YIELD_COUNT):
            self._open(topic, range(first, min(first + OPENED_PER_YIELD_COUNT, topic.partition_count)))
            await asyncio.sleep(0)

    def _open(self, topic: TopicImage, indexes: range) -> None:
        """Open the replicas that are assigned to this broker and not open yet."""
        config = None
        for index in indexes:
            if (topic.name, index) in self._partitions:
                continue
            replica = TopicIdPartition(topic.topic_id, index)
            if not self._is_held(topic, index) or replica in self._offline or replica in self._lost:
                continue
            config = config or self._log_config(topic.name)
            log = self._open_log(topic, index, config)
            if log is None:
                continue
            state = self._image.partition(topic, index)
            partition = Partition(self._broker_id, topic, index, log, state, self._flush_soon)
            partition.on_caught_up = self._caught_up
            partition.wakes_for_high_watermark = self.serves_consumers_of_followers
            self._partitions[topic.name, index] = partition
            self._by_id[topic.topic_id, index] = partition
            self._led(partition)

    def _led(self, partition: Partition) -> None:
        if partition.is_leader and len(partition.replicas) > 1:
            self.on_led(partition)

    def _caught_up(self, partition: Partition) -> None:
        self.on_caught_up(partition)

    def _is_held(self, topic: TopicImage, index: int) -> bool:
        """Whether a replica of the partition is assigned to this broker."""
        exists = 0 <= index < topic.partition_count
        return exists and self._broker_id in self._image.partition(topic, index).replicas

    def _missing(self, topic: TopicImage) -> Iterator[TopicIdPartition]:
        for index in range(topic.partition_count):
            if (
                self._is_held(topic, index)
                and self.log_manager.get(TopicPartition(topic.name, index)) is None
            ):
                yield TopicIdPartition(topic.topic_id, index)

    def _open_log(self, topic: TopicImage, index: int, config: LogConfig) -> PartitionLog | None:
        """Return a replica's log, created if needed; None if the disk fails.

        A failure takes the replica offline, because the cluster has already assigned it.
        """
        log = self.log_manager.get(TopicPartition(topic.name, index))
        if log is not None:
            log.config = config
            return log
        try:
            return self.log_manager.create(topic.name, index, topic.topic_id, config)
        except KafkaError as error:
            _log.error("cannot create a replica", topic=topic.name, partition=index, why=error.message)
            self._offline.add(TopicIdPartition(topic.topic_id, index))
            self.on_missing_log()
            return None

    def _log_config(self, topic: str) -> LogConfig:
        return self._log_configs(topic, self._image.topic_configs.get(topic, {}))

    def _removal(self, after: MetadataImage, topic: TopicImage) -> Removal:
        """Return what is done with the logs of a topic that does not exist any more.

        A deletion keeps its entry until this broker has reported it. A topic without one was not deleted: it is missing
        in a restored backup, for example.
        """
        if _is_kept(after, topic):
            return partial(self.log_manager.schedule_deletion, keep=True)
        if topic.topic_id.hex() in after.deleted_topics:
            return self.log_manager.schedule_deletion
        _log.error("a topic is missing without having been deleted: its logs are kept", topic=topic.name)
        return self.log_manager.rename_stray

    async def _close_topic(self, topic: TopicImage, remove: Removal) -> None:
        for index in range(topic.partition_count):
            self._close_replica(topic, index, remove)
            if (index + 1) % OPENED_PER_YIELD_COUNT == 0:
                await asyncio.sleep(0)
        await asyncio.sleep(0)

    def _close_replica(self, topic: TopicImage, index: int, remove: Removal) -> None:
        replica = TopicIdPartition(topic.topic_id, index)
        self._offline.discard(replica)
        self._lost.discard(replica)
        partition = self._partitions.pop((topic.name, index), None)
        if partition is not None:
            del self._by_id[topic.topic_id, index]
            partition.close()
            remove(TopicPartition(topic.name, index))

    def _reconfigure(self, topic: str, config: LogConfig) -> None:
        for partition in self._of_topic(topic):
            partition.reconfigure(config)

    async def reconfigure_all(self) -> None:
        """Apply changed broker-wide defaults to all logs, yielding to the event loop regularly."""
        defaults: LogConfig | None = None
        for number, topic in enumerate(list(self._image.topics), 1):
            if number % RECONFIGURED_PER_YIELD_COUNT == 0:
                await asyncio.sleep(0)
            if topic in self._image.topic_configs:
                self._reconfigure(topic, self._log_config(topic))
            else:
                defaults = defaults or self._log_config(topic)  # the same for all topics without overrides
                self._reconfigure(topic, defaults)

    def _of_topic(self, topic: str) -> Iterable[Partition]:
        known = self._image.topics.get(topic)
        indexes = range(known.partition_count) if known else ()
        return [self._partitions[topic, index] for index in indexes if (topic, index) in self._partitions]

    def _update_state(self, key: str, before: MetadataImage) -> None:
        """Apply a partition's state: add, remove or update the replica of this broker."""
        topic_id, _, number = key.partition("/")
        topic, index = self._image.topic_by_id(bytes.fromhex(topic_id)), int(number)
        if topic is None:
            return
        state = self._image.partition(topic, index)
        partition = self._by_id.get((topic.topic_id, index))
        if self._broker_id not in state.replicas:
            is_older = partition is not None and state.partition_epoch <= partition.partition_epoch
            remove = self.log_manager.rename_stray if is_older else self.log_manager.schedule_deletion
            self._close_replica(topic, index, remove)
        elif partition is not None:
            leader_epoch = partition.leader_epoch
            partition.update_state(state)
            if partition.leader_epoch != leader_epoch:
                self._led(partition)
            former_topic = before.topic_by_id(topic.topic_id)
            # a partition that this commit adds had no former state
            if former_topic is not None and index < former_topic.partition_count:
                former = before.partition(former_topic, index)
                self.leader_statistics.count(TopicPartition(topic.name, index), former, state)
        else:
            self._open(topic, range(index, index + 1))

    def register_metrics(self, registry: MetricsRegistry) -> None:
        registry.add_metric(names.PARTITIONS, lambda: [({}, len(self._partitions))])
        gauges = {
            names.PARTITION_LEADERS: "leaders_count",
            names.UNDER_REPLICATED: "under_replicated_count",
            names.UNDER_MIN_ISR: "under_min_isr_count",
        }
        counters = {
            names.LEADER_ELECTIONS: "elections_count",
            names.UNCLEAN_ELECTIONS: "unclean_elections_count",
            names.ISR_SHRINKS: "isr_shrinks_count",
            names.ISR_EXPANDS: "isr_expands_count",
        }

        def collect() -> dict[MetricName, Values]:
            gauged, counted = self.statistics(), self.leader_statistics.statistics()
            return {
                **{metric: [({}, gauged[key])] for metric, key in gauges.items()},
                **{metric: [({}, counted[key])] for metric, key in counters.items()},
            }

        registry.add_together((*gauges, *counters), collect)

    def statistics(self) -> dict[str, int]:
        """Return the number of partitions, of those that this broker leads, and of those that lack replicas in sync."""
        led = [partition for partition in self if partition.is_leader]
        return {
            "partitions_count": len(self._partitions),
            "leaders_count": len(led),
            "under_replicated_count": sum(len(partition.isr) < len(partition.replicas) for partition in led),
            "under_min_isr_count": sum(partition.is_under_min_isr for partition in led),
            **self._deadlines.statistics(),
        }


def _is_kept(after: MetadataImage, deleted: TopicImage) -> bool:
    """Whether the logs of a deleted topic are kept: in the trash, or for the topic's new name.

    If metadata that was missed is loaded again, a deletion and an undeletion under another name are one change.
    """
    return deleted.topic_id.hex() in after.trashed_topics or after.topic_by_id(deleted.topic_id) is not None


def _is_restored(before: MetadataImage, topic: TopicImage) -> bool:
    """Whether the logs of a topic are in the trash; see `_is_kept`."""
    former = before.topic_by_id(topic.topic_id)
    is_renamed = former is not None and former.name != topic.name
    return is_renamed or topic.topic_id.hex() in before.trashed_topics
