"""The log of a shard: appends records and reads batches."""

import asyncio
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from barnabas.coordinator.result import TransactionalProducer
from barnabas.coordinator.shard import RecordPosition
from barnabas.log.append_info import AppendInfo
from barnabas.replication.flusher import Flusher
from barnabas.replication.partition import Partition
from barnabas.telemetry.logs import get_logger
from barnabas.wire.codec import DecodeError
from barnabas.wire.coordinator_records.serde import AnyRecord, EncodedRecord, Serde, UnknownRecord, encode
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import NO_PRODUCER_ID, BatchHeader, iterate_headers
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.control import EndTransactionMarker, read_end_marker
from barnabas.wire.records.key_value_batch import encode_pairs, split_pairs
from barnabas.wire.records.record import batch_body, decode_batch

_NOBODY = (NO_PRODUCER_ID, -1)

#: Bytes that are read and replayed before other clients are served, while a shard is loading.
SLICE_BYTES = 256 << 10

#: Records in a batch of a result that is not atomic.
BATCH_RECORDS_MAX = 500

#: The most that a record takes in a batch beside its key and its value.
_RECORD_OVERHEAD_BYTES = 23

#: Offset, timestamp, key and value of a record.
Content: TypeAlias = tuple[int, int, bytes, bytes | None]

_log = get_logger("barnabas.coordinator")

#: Error of an append -> error for the client: retry, or find the coordinator again.
_COORDINATOR_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def coordinator_error(error: KafkaError) -> KafkaError:
    """Return the error for a coordinator's client when records could not be appended."""
    return KafkaError(_COORDINATOR_ERRORS.get(error.code, error.code), error.message)


class ShardLog:
    """A partition of an internal topic that this broker leads."""

    def __init__(
        self, partition: Partition, serde: Serde, flusher: Flusher, compression: Compression
    ) -> None:
        self.partition = partition
        self._serde = serde
        self._flusher = flusher
        self._compression = compression

    def append(
        self, records: Sequence[AnyRecord], now_ms: int, producer: TransactionalProducer | None
    ) -> AppendInfo:
        """Append records as one batch, which belongs to a transaction if a producer is given.

        :raises KafkaError: If nothing was appended.
        """
        encoded = [_encoded(record) for record in records]
        if producer is None:
            batch = encode_pairs(encoded, now_ms, compression=self._compression)
        else:
            batch = encode_pairs(
                encoded,
                now_ms,
                compression=self._compression,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                transactional=True,
            )
        verification = None if producer is None else producer.verification
        return self.partition.append_as_coordinator(memoryview(batch), verification)

    def split(self, records: Sequence[AnyRecord]) -> Iterator[Sequence[AnyRecord]]:
        """Divide records into batches that the log accepts; a record that is too large is in one of its own."""
        bytes_max = self.message_bytes_max // 2  # compressed records may be larger
        batch: list[AnyRecord] = []
        size_bytes = 0
        for record in records:
            key, value = _encoded(record)
            record_bytes = len(key) + len(value or b"") + _RECORD_OVERHEAD_BYTES
            if batch and (len(batch) == BATCH_RECORDS_MAX or size_bytes + record_bytes > bytes_max):
                yield batch
                batch, size_bytes = [], 0
            batch.append(record)
            size_bytes += record_bytes
        if batch:
            yield batch

    @property
    def message_bytes_max(self) -> int:
        """The size of the largest batch that the log accepts."""
        return self.partition.log.config.max_message_bytes

    def stored(self) -> "Awaitable[None] | None":
        """Return a future of the replication and flush of everything appended; None if there is nothing to wait for.

        :raises KafkaError: The error for the client if it will not be.
        """
        if self.stored_everything:
            return None
        partition = self.partition
        try:
            replicated = partition.when_replicated(partition.log.log_end_offset)
        except KafkaError as error:
            raise coordinator_error(error) from error
        flushed = self._flusher.when_flushed(partition.log) if partition.log.needs_flush else None
        if replicated is None and flushed is None:
            return None
        return _stored([wait for wait in (replicated, flushed) if wait is not None])

    @property
    def stored_everything(self) -> bool:
        """Whether `stored` has nothing to wait for."""
        log = self.partition.log
        return log.high_watermark >= log.log_end_offset and not log.needs_flush

    @property
    def is_online(self) -> bool:
        """Whether the disk of the log has not failed."""
        return self.partition.log.failure is None

    @property
    def leader_epoch(self) -> int:
        """The epoch in which this broker leads the partition; it distinguishes successive coordinators."""
        return self.partition.leader_epoch

    @property
    def start_offset(self) -> int:
        return self.partition.log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self.partition.log.log_end_offset

    def read(self, offset: int) -> "list[LoadedBatch]":
        """Read batches from `offset` on, of about `SLICE_BYTES`; none at the end.

        :raises KafkaError: KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE.
        """
        data = self.partition.log.read(offset, SLICE_BYTES, self.end_offset, min_one_batch=True).data
        return [
            self._load(data, position, header)
            for position, header in iterate_headers(data)
            if header.last_offset >= offset
        ]

    def _load(self, data: memoryview, position: int, header: BatchHeader) -> "LoadedBatch":
        if header.is_control:
            return LoadedBatch(header, [], read_end_marker(data, position, header))
        return LoadedBatch(header, list(self._records(header, _contents(data, position, header))), None)

    def _records(
        self, header: BatchHeader, contents: Iterable[Content]
    ) -> Iterator[tuple[AnyRecord, RecordPosition]]:
        producer_id, epoch = (
            (header.producer_id, header.producer_epoch) if header.is_transactional else _NOBODY
        )
        load = self._serde.load
        for offset, timestamp_ms, key, value in contents:
            try:
                known = load(key, value)
            except DecodeError as error:
                message = f"the record at offset {offset} of {self} is damaged: {error}"
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message) from error
            if isinstance(known, UnknownRecord):
                _log.warning(
                    "a record of an unknown type is ignored",
                    partition=str(self),
                    offset=offset,
                    record_type=known.record_type,
                )
            else:
                yield known, RecordPosition(offset, timestamp_ms, producer_id, epoch)

    def __str__(self) -> str:
        return str(self.partition.log.topic_partition)


def _contents(data: memoryview, position: int, header: BatchHeader) -> list[Content]:
    """Return the records of a batch; there is a fast path for batches that coordinators write.

    :raises KafkaError: CORRUPT_MESSAGE.
    """
    pairs = split_pairs(batch_body(data, position, header), header)
    if pairs is None:
        records = decode_batch(data, position, header)
        return [(record.offset, record.timestamp_ms, record.key or b"", record.value) for record in records]
    timestamp_ms = header.max_timestamp if header.is_log_append_time else header.base_timestamp
    base_offset = header.base_offset
    return [(base_offset + delta, timestamp_ms, key, value) for delta, key, value in pairs]


def _encoded(record: AnyRecord) -> tuple[bytes, bytes | None]:
    return record if isinstance(record, EncodedRecord) else encode(*record)


async def _stored(waits: "Sequence[asyncio.Future[None]]") -> None:
    try:
        await asyncio.gather(*waits)
    except OSError as error:
        raise KafkaError(
            ErrorCode.NOT_COORDINATOR, f"The log cannot be flushed: {error.strerror}."
        ) from error
    except KafkaError as error:
        raise coordinator_error(error) from error


class LoadedBatch(NamedTuple):
    """A decoded batch of a shard's log."""

    header: BatchHeader
    records: list[tuple[AnyRecord, RecordPosition]]
    marker: EndTransactionMarker | None  #: of a batch with a transaction marker
