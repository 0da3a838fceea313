"""A shard of transactional ids on its own: a log in memory, a fake clock, markers written on demand."""

import itertools

from barnabas.base.ids import ProducerIdAndEpoch, TopicPartition
from barnabas.config.broker_config import BrokerConfig
from barnabas.coordinator.result import CoordinatorResult, Pending, TimerKey
from barnabas.coordinator.shard import RecordPosition
from barnabas.metadata.decision import Decision
from barnabas.metadata.features import FINALIZED_FEATURES
from barnabas.metadata.image import MetadataImage
from barnabas.transactions.end_txn import EndTxn
from barnabas.transactions.initialization import Initialization
from barnabas.transactions.partitions import Addition
from barnabas.transactions.shard import TransactionCoordinatorContext, TransactionShard, WriteMarkers
from barnabas.transactions.statistics import TransactionCounts
from barnabas.transactions.transaction import TransactionMetadata
from barnabas.wire.coordinator_records.serde import TRANSACTION_RECORDS, CoordinatorRecord, encode
from barnabas.wire.errors import ErrorCode, KafkaError
from support.images import replayed

Stored = tuple[bytes, bytes | None]


def image_at(level: int) -> MetadataImage:
    """Return a cluster with this transaction.version."""
    return replayed(MetadataImage(), Decision(None, (FINALIZED_FEATURES.put("transaction.version", level),)))


class TransactionWorld:
    """Takes events, and records their records, responses and pending markers."""

    def __init__(self, level: int = 2, **overrides: str) -> None:
        settings = {key.replace("_", "."): value for key, value in overrides.items()}
        self.config = BrokerConfig({"node.id": "1", "log.dirs": "/nowhere", **settings})
        self.level = level
        self.now_ms = 0
        self.ids = itertools.count()
        self.log: list[Stored] = []
        self.appended: list[CoordinatorRecord] = []  #: from the last event
        self.markers: list[TransactionMetadata] = []  #: still to be written
        self.effects: list[object] = []  #: from the last event
        self.timers: dict[TimerKey, int] = {}
        self.counts = TransactionCounts()
        self.refusal: KafkaError | None = None  #: error of every append
        self.out_of_ids = False
        self.start()

    def start(self) -> None:
        """Start the coordinator from the log."""
        around = TransactionCoordinatorContext(
            lambda: self.config, lambda: image_at(self.level), self._next_id, self.counts
        )
        self.shard = TransactionShard(around)
        self.markers.clear()
        self.timers.clear()
        for offset, stored in enumerate(self.log):
            record = TRANSACTION_RECORDS.decode(*stored)
            assert isinstance(record, CoordinatorRecord)
            self.shard.replay(record, RecordPosition(offset, self.now_ms))
        result = CoordinatorResult(self.now_ms)
        self.shard.on_loaded(result)
        self.perform(result)

    def _next_id(self) -> int:
        if self.out_of_ids:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return next(self.ids)

    def perform(self, result: CoordinatorResult) -> object:
        """Perform a result; return its response, or raise its error."""
        self.appended, self.effects = [], []
        if result.records and self.refusal is not None:
            instead = CoordinatorResult(self.now_ms)
            if result.on_append_error is None:
                raise self.refusal
            result.on_append_error(instead, self.refusal)
            return self.perform(instead)
        for record in result.records:
            self.log.append(encode(*record))
            self.shard.replay(record, RecordPosition(len(self.log) - 1, self.now_ms))
        self.appended = result.records
        for key, delay_ms in result.timers:
            self.timers.pop(key, None)
            if delay_ms is not None:
                self.timers[key] = self.now_ms + delay_ms
        self.effects = result.effects
        self.markers += [each.transaction for each in result.effects if isinstance(each, WriteMarkers)]
        self.shard.validate()
        for _, response in result.responses:
            if isinstance(response, KafkaError):
                raise response
            return response
        return None

    def init(
        self, name: str, timeout_ms: int = 60_000, expected: tuple[int, int] | None = None
    ) -> TransactionMetadata:
        """Send InitProducerId."""
        who = None if expected is None else ProducerIdAndEpoch(*expected)
        result = CoordinatorResult(self.now_ms)
        self.shard.initialize(result, Pending("init"), Initialization(name, timeout_ms, who))
        given = self.perform(result)
        assert isinstance(given, TransactionMetadata)
        return given

    def add(
        self, name: str, producer_id: int, epoch: int, *partitions: TopicPartition, version: int = 2
    ) -> None:
        """Send AddPartitionsToTxn."""
        result = CoordinatorResult(self.now_ms)
        self.shard.add_partitions(
            result, Pending("add"), Addition(name, producer_id, epoch, partitions, version)
        )
        self.perform(result)

    def end(
        self, name: str, producer_id: int, epoch: int, *, commit: bool = True, version: int = 2
    ) -> TransactionMetadata:
        """Send EndTxn; the markers remain to be written."""
        result = CoordinatorResult(self.now_ms)
        self.shard.end(result, Pending("end"), EndTxn(name, producer_id, epoch, commit, version))
        ended = self.perform(result)
        assert isinstance(ended, TransactionMetadata)
        return ended

    def write_markers(self) -> list[TransactionMetadata]:
        """Write the markers of every pending partition."""
        written, self.markers = self.markers, []
        for transaction in written:
            result = CoordinatorResult(self.now_ms)
            self.shard.markers_written(result, transaction)
            self.perform(result)
        return written

    def wait(self, delay_ms: int) -> list[CoordinatorRecord]:
        """Let time pass; return the records that timers appended."""
        end_ms, appended = self.now_ms + delay_ms, []
        while self.timers and min(self.timers.values()) <= end_ms:
            key = min(self.timers, key=self.timers.__getitem__)
            self.now_ms = self.timers.pop(key)
            result = CoordinatorResult(self.now_ms)
            self.shard.expire(result, key)
            self.perform(result)
            appended += self.appended
        self.now_ms = end_ms
        self.appended = appended
        return appended

    def overwrite(self, transaction: TransactionMetadata) -> None:
        """Replace a transactional id's state, as if after a long history."""
        record = CoordinatorRecord(transaction.key, transaction.value(), min(self.level, 1))
        self.log.append(encode(*record))
        self.shard.replay(record, RecordPosition(len(self.log) - 1, self.now_ms))

    def __getitem__(self, name: str) -> TransactionMetadata:
        return self.shard.transactions[name]
