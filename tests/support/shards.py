"""A minimal shard, which counts, and a log in memory for it."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence

from barnabas.coordinator.result import CoordinatorResult, Pending, TimerKey, TransactionalProducer
from barnabas.coordinator.shard import RecordPosition, Step
from barnabas.coordinator.shard_log import LoadedBatch, ShardLog
from barnabas.log.append_info import AppendInfo
from barnabas.metadata.image import MetadataImage
from barnabas.wire.coordinator_records.serde import AnyRecord, EncodedRecord, encode
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import BatchHeader
from barnabas.wire.records.control import EndTransactionMarker
from barnabas.wire.records.key_value_batch import encode_pairs
from barnabas.wire.schema import Message, Versions, int64, string, versions


class CountKey(Message):
    """The name of a counter."""

    API_KEY = 0
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("none")

    name: str = string(default="")


class CountValue(Message):
    """The value of a counter."""

    API_KEY = 0
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("none")

    count: int = int64(default=0)


class CountingShard:
    """Adds up numbers, and answers requests that wait for a sum."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.waiting: list[tuple[str, int, Pending[int]]] = []
        self.expired: list[TimerKey] = []
        self.ended: list[EndTransactionMarker] = []
        self.is_loaded = self.is_unloaded = False
        self.needs_metadata_updates = True
        self.followed_count = 0

    def add(self, result: CoordinatorResult, pending: Pending[int], name: str, by: int) -> None:
        count = self.counts.get(name, 0) + by
        result.append(CountKey(name=name), CountValue(count=count))
        result.answer(pending, count)
        for minimum in [minimum for minimum in self.waiting if minimum[0] == name and minimum[1] <= count]:
            self.waiting.remove(minimum)
            result.answer(minimum[2], count)

    def look(self, result: CoordinatorResult, pending: Pending[int], name: str) -> None:
        """Answer with a count and schedule a timer, or fail if there is none."""
        result.set_timer(("look", name), 10)
        if name in self.counts:
            result.answer(pending, self.counts[name])
        else:
            result.fail(pending, KafkaError(ErrorCode.GROUP_ID_NOT_FOUND))

    def wait(self, result: CoordinatorResult, pending: Pending[int], name: str, count: int) -> None:
        self.waiting.append((name, count, pending))
        result.set_timer(("wait", name), 10)

    def replay(self, record: AnyRecord, tp: RecordPosition) -> None:
        assert isinstance(record.key, CountKey)
        if record.value is None:
            self.counts.pop(record.key.name, None)
            return
        assert isinstance(record.value, CountValue)
        self.counts[record.key.name] = record.value.count

    def replay_transaction_marker(self, marker: EndTransactionMarker) -> None:
        self.ended.append(marker)

    def on_loaded(self, result: CoordinatorResult) -> None:
        self.is_loaded = True

    def expire(self, result: CoordinatorResult, key: TimerKey) -> None:
        self.expired.append(key)

    def catch_up(self, before: MetadataImage) -> Iterable[Step]:
        return ()

    def on_metadata_update(self, before: MetadataImage, after: MetadataImage) -> Iterable[Step]:
        self.followed_count += 1
        return ()

    def on_unloaded(self) -> None:
        self.is_unloaded = True

    def statistics(self) -> dict[str, object]:
        return {"names_count": len(self.counts)}


class MemoryShardLog(ShardLog):
    """A shard's log without a partition: appends can be made to fail, and flushes to take time."""

    def __init__(self) -> None:
        self.batches: list[LoadedBatch] = []
        self.refusal: KafkaError | None = None
        self.storing: asyncio.Future[None] | None = None
        self.failed_reads_left = 0
        self.has_failed_disk = False
        self.bytes_max = 1 << 20

    @property
    def message_bytes_max(self) -> int:
        return self.bytes_max

    def append(
        self, records: Sequence[AnyRecord], now_ms: int, producer: TransactionalProducer | None
    ) -> AppendInfo:
        if self.refusal is not None:
            raise self.refusal
        pairs = [record if isinstance(record, EncodedRecord) else encode(*record) for record in records]
        if len(encode_pairs(pairs, now_ms)) > self.bytes_max:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "too large")
        first = self.end_offset
        ids = (producer.producer_id, producer.producer_epoch) if producer else (-1, -1)
        header = BatchHeader(first, 0, 0, 2, 0, 0, len(records) - 1, now_ms, now_ms, *ids, -1, len(records))
        placed = [(record, RecordPosition(first + at, now_ms, *ids)) for at, record in enumerate(records)]
        self.batches.append(LoadedBatch(header, placed, None))
        return AppendInfo(first, header.last_offset, -1, 0, False, 0)

    def end_transaction(self, marker: EndTransactionMarker) -> None:
        ids = (marker.producer_id, marker.producer_epoch)
        header = BatchHeader(self.end_offset, 0, 0, 2, 0, 0x20, 0, 0, 0, *ids, -1, 1)
        self.batches.append(LoadedBatch(header, [], marker))

    def stored(self) -> Awaitable[None] | None:
        return self.storing

    @property
    def stored_everything(self) -> bool:
        return self.storing is None

    @property
    def start_offset(self) -> int:
        return 0

    @property
    def end_offset(self) -> int:
        return self.batches[-1].header.last_offset + 1 if self.batches else 0

    @property
    def is_online(self) -> bool:
        return not self.has_failed_disk

    def read(self, offset: int) -> list[LoadedBatch]:
        if self.failed_reads_left:
            self.failed_reads_left -= 1
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "Too many open files")
        return [batch for batch in self.batches if batch.header.last_offset >= offset][:1]

    def __str__(self) -> str:
        return "counts-0"
