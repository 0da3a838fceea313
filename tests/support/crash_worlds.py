"""Both coordinators and an output partition on one disk, where the broker may be killed at any append.

Entries on the disk survive a kill; shards, timers, markers in flight and waiting requests do not. Time is a fake clock.
A batch is written completely or not at all.
"""

import itertools
import random
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, TypeAlias

from barnabas.base.ids import TopicPartition
from barnabas.config.broker_config import BrokerConfig
from barnabas.coordinator.result import CoordinatorResult, Pending, TimerKey
from barnabas.coordinator.shard import RecordPosition
from barnabas.groups.context import GroupCoordinatorContext
from barnabas.groups.shard import GroupShard
from barnabas.metadata.decision import Decision
from barnabas.metadata.features import FINALIZED_FEATURES
from barnabas.metadata.image import MetadataImage
from barnabas.transactions.shard import TransactionCoordinatorContext, TransactionShard, WriteMarkers
from barnabas.transactions.transaction import TransactionMetadata, TransactionState
from barnabas.wire.coordinator_records.committed_offset import decode_value
from barnabas.wire.coordinator_records.serde import (
    GROUP_RECORDS,
    TRANSACTION_RECORDS,
    AnyRecord,
    EncodedRecord,
    UnknownRecord,
    encode,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.control import EndTransactionMarker
from support.images import cluster, new_topic, replayed

INPUT, OUTPUT = TopicPartition("in", 0), TopicPartition("out", 0)
GROUP_LOG = TopicPartition("__consumer_offsets", 0)
TRANSACTION_LOG = TopicPartition("__transaction_state", 0)
GROUP = "g"

Who: TypeAlias = tuple[int, int]  #: producer id and epoch
NO_PRODUCER: Who = (-1, -1)
Shard: TypeAlias = GroupShard | TransactionShard


class Killed(Exception):
    """The broker was killed; its clients lose their connections."""


class Batch(NamedTuple):
    """Records of a coordinator, encoded."""

    log: TopicPartition
    records: tuple[tuple[bytes, bytes | None], ...]
    who: Who  #: the producer whose transaction they belong to
    now_ms: int


class Output(NamedTuple):
    """A record that an application has written in a transaction."""

    number: int
    who: Who
    sequence: int


class End(NamedTuple):
    """A transaction marker in a partition."""

    log: TopicPartition
    marker: EndTransactionMarker


Entry: TypeAlias = Batch | Output | End


class Disk:
    """Everything that was ever appended, in order."""

    def __init__(self, kills: Collection[int] = (), *, is_kept: bool = True) -> None:
        """`kills` names the appends that kill the broker; `is_kept`: whether that append is on the disk."""
        self.entries: list[Entry] = []
        self.appends_count = 0
        self._kills, self._is_kept = frozenset(kills), is_kept

    def append(self, entry: Entry) -> int:
        """Return the index of the entry.

        :raises Killed: If this append is one of `kills`.
        """
        is_last = self.appends_count in self._kills
        self.appends_count += 1
        if self._is_kept or not is_last:
            self.entries.append(entry)
        if is_last:
            raise Killed
        return len(self.entries) - 1


class CrashWorld:
    """A broker; `start` starts it again after it was killed."""

    def __init__(self, disk: Disk, level: int, seed: int = 7) -> None:
        """`level` is the cluster's transaction.version."""
        self.disk, self.rng = disk, random.Random(seed)
        self.config = BrokerConfig({"node.id": "1", "log.dirs": "/nowhere"})
        self.now_ms = 1_000_000
        self._image, self._ids = self._cluster(level), itertools.count()
        self.start()

    @staticmethod
    def _cluster(level: int) -> MetadataImage:
        feature = FINALIZED_FEATURES.put("transaction.version", level)
        return replayed(cluster(1, new_topic(INPUT.topic, 1)), Decision(None, (feature,)))

    def start(self) -> None:
        """Load the entries on the disk."""
        self.timers: dict[tuple[TopicPartition, TimerKey], int] = {}
        self.answers: dict[Pending[Any], Any] = {}
        self.ending: list[TransactionMetadata] = []  #: producers whose markers are still to be written
        self.groups = GroupShard(GroupCoordinatorContext(lambda: self.config, lambda: self._image, self.rng))
        around = TransactionCoordinatorContext(
            lambda: self.config, lambda: self._image, lambda: next(self._ids)
        )
        self.transactions = TransactionShard(around)
        for offset, entry in enumerate(self.disk.entries):
            self._replay(entry, offset)
        for log in (GROUP_LOG, TRANSACTION_LOG):
            self.run_event(log, lambda shard, result: shard.on_loaded(result))

    def shard(self, log: TopicPartition) -> Any:
        """Return the shard that owns the log."""
        return self.groups if log == GROUP_LOG else self.transactions

    def _replay(self, entry: Entry, offset: int) -> None:
        if isinstance(entry, End) and entry.log == GROUP_LOG:
            self.groups.replay_transaction_marker(entry.marker)
        elif isinstance(entry, Batch):
            serde = GROUP_RECORDS if entry.log == GROUP_LOG else TRANSACTION_RECORDS
            for key, value in entry.records:
                record = serde.load(key, value)
                assert not isinstance(record, UnknownRecord)
                self.shard(entry.log).replay(record, RecordPosition(offset, entry.now_ms, *entry.who))

    # Events

    def ask(
        self, log: TopicPartition, event: Callable[[Any, CoordinatorResult, Pending[Any]], None]
    ) -> Pending[Any]:
        """Run a request.

        :raises KafkaError: If the request fails.
        """
        pending: Pending[Any] = Pending()
        result = CoordinatorResult(self.now_ms)
        event(self.shard(log), result, pending)
        self._perform(log, result)
        return pending

    def run_event(self, log: TopicPartition, event: Callable[[Any, CoordinatorResult], None]) -> None:
        """Run an event that has no response."""
        result = CoordinatorResult(self.now_ms)
        event(self.shard(log), result)
        self._perform(log, result)

    def _perform(self, log: TopicPartition, result: CoordinatorResult) -> None:
        if result.records:
            producer = result.producer
            who = (producer.producer_id, producer.producer_epoch) if producer else NO_PRODUCER
            batch = Batch(log, tuple(_encoded(each) for each in result.records), who, self.now_ms)
            tp = RecordPosition(self.disk.append(batch), self.now_ms, *who)
            for record in result.records:
                self.shard(log).replay(record, tp)
        for key, delay_ms in result.timers:
            self.timers.pop((log, key), None)
            if delay_ms is not None:
                self.timers[log, key] = self.now_ms + delay_ms
        self.answers.update(result.responses)
        self.ending += [each.transaction for each in result.effects if isinstance(each, WriteMarkers)]

    def write_markers(self) -> None:
        """Write every marker, then report their completion to the coordinator."""
        while self.ending:
            transaction = self.ending.pop(0)
            who = (transaction.producer_id, transaction.producer_epoch)
            is_commit = transaction.state is TransactionState.PREPARE_COMMIT
            for partition in sorted(transaction.partitions):
                end = End(partition, EndTransactionMarker(*who, 0, is_commit, self.now_ms))
                self._replay(end, self.disk.append(end))
            self.run_event(
                TRANSACTION_LOG,
                lambda shard, result, completed=transaction: shard.markers_written(result, completed),
            )

    def wait(self, duration_ms: int) -> None:
        """Let time pass, and run the timers that become due."""
        end_ms = self.now_ms + duration_ms
        self.write_markers()
        while self.timers and min(self.timers.values()) <= end_ms:
            log, key = min(self.timers, key=self.timers.__getitem__)
            self.now_ms = max(self.now_ms, self.timers.pop((log, key)))
            self.run_event(log, lambda shard, result, due=key: shard.expire(result, due))
            self.write_markers()
        self.now_ms = end_ms

    # The output

    def produce(self, output: Output) -> None:
        """Append an output once; a fenced producer cannot append.

        :raises KafkaError: INVALID_PRODUCER_EPOCH.
        """
        who = output.who
        if output in self.disk.entries:
            return
        epochs = [epoch for producer_id, epoch in self._writers() if producer_id == who[0]]
        if epochs and max(epochs) > who[1]:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
        self.disk.append(output)

    def _writers(self) -> list[Who]:
        outputs = [entry.who for entry in self.disk.entries if isinstance(entry, Output)]
        return outputs + [(marker.producer_id, marker.producer_epoch) for marker in self._ends()]

    def _ends(self) -> list[EndTransactionMarker]:
        return [entry.marker for entry in self.disk.entries if isinstance(entry, End) and entry.log == OUTPUT]

    def committed(self) -> tuple[list[int], int]:
        """Return the outputs visible to read_committed, and the number in open transactions."""
        open_outputs: dict[int, list[int]] = {}
        numbers: list[int] = []
        for entry in self.disk.entries:
            if isinstance(entry, Output):
                open_outputs.setdefault(entry.who[0], []).append(entry.number)
            elif isinstance(entry, End) and entry.log == OUTPUT:
                ended = open_outputs.pop(entry.marker.producer_id, [])
                numbers += ended if entry.marker.commit else []
        return numbers, sum(map(len, open_outputs.values()))

    def read_count(self) -> int:
        """Return the number of inputs that the group has read, by its committed offset."""
        partitions = self.groups.offsets.table.of_group(GROUP)
        return max((decode_value(value).offset for _, value in partitions.values()), default=0)


def _encoded(record: AnyRecord) -> tuple[bytes, bytes | None]:
    return (record.key, record.value) if isinstance(record, EncodedRecord) else encode(*record)
