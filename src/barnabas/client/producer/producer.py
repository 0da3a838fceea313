"""Sends records: batched, compressed, idempotent by default, in order per partition."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from barnabas.base.clock import Clock, SystemClock
from barnabas.base.ids import ProducerIdAndEpoch, TopicPartition
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import error_for, is_retriable_elsewhere
from barnabas.client.core.metadata import NO_LEADER, TopicInfo
from barnabas.client.producer.accumulator import (
    Accumulator,
    Batch,
    RecordMetadata,
    record_size_bytes,
)
from barnabas.client.producer.partitioner import Sticky, partition_for_key
from barnabas.client.producer.produce_messages import outcomes_by_partition, produce_request, version_max
from barnabas.client.producer.record_checks import check_record
from barnabas.client.producer.transaction_requests import idempotent_identity
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import PartitionProduceResponse
from barnabas.wire.records.batch import SEQUENCE_LIMIT
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record, RecordHeaders

#: The next batch fills while one is in flight, so waiting longer gains little.
LINGER_MS = 0
BATCH_SIZE_BYTES = 64 * 1024
BUFFER_SIZE_BYTES = 32 * 1024 * 1024
DELIVERY_TIMEOUT_MS = 120_000
TOPIC_TIMEOUT_MS = 5_000
ACKS_ALL = -1
_LANE = "produce"

#: Errors that a batch is too large; its halves may be accepted.
_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})

#: Errors of single records, for which the broker refuses the whole batch (KIP-467).
_RECORDS_REFUSED = frozenset({ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP})

#: Errors of a sequence or its producer id: the leader has lost records, or its state of the producer.
_SEQUENCE_REFUSED = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)

_Outcomes = Mapping[TopicPartition, PartitionProduceResponse | Exception]


class Producer:
    """Produces to the given cluster. Use as an async context manager, which flushes at the end.

    With `acks=-1` it is idempotent: retries neither duplicate nor reorder. One batch per partition is in
    flight at a time, so records stay in order without idempotence, too. If the broker refuses single records of a
    batch, only these fail; the others are sent again without them, in order.
    """

    def __init__(
        self,
        cluster: ClusterClient,
        *,
        acks: int = ACKS_ALL,
        compression: Compression = Compression.NONE,
        linger_ms: int = LINGER_MS,
        batch_size_bytes: int = BATCH_SIZE_BYTES,
        buffer_size_bytes: int = BUFFER_SIZE_BYTES,
        delivery_timeout_ms: int = DELIVERY_TIMEOUT_MS,
        topic_timeout_ms: int = TOPIC_TIMEOUT_MS,
        clock: Clock | None = None,
    ) -> None:
        if acks not in (ACKS_ALL, 0, 1):
            message = (
                f"acks={acks}: -1 (all in-sync replicas), 1 (the leader) or 0 (no acknowledgment) is expected"
            )
            raise ValueError(message)
        self.cluster = cluster
        self._acks = acks
        self._compression = compression
        self._buffer_size_bytes = buffer_size_bytes
        self._delivery_timeout_ms = delivery_timeout_ms
        self._topic_timeout_ms = topic_timeout_ms
        self._clock = clock or SystemClock()
        self._sticky = Sticky(batch_size_bytes, cluster.retry.random)
        self._accumulator = Accumulator(batch_size_bytes, linger_ms)
        self._identity: ProducerIdAndEpoch | None = None
        self._sequences: defaultdict[TopicPartition, int] = defaultdict(int)
        self._identifying = asyncio.Lock()
        self._flushing = 0  #: calls of `flush` that wait
        self._work = asyncio.Event()  #: set when the sender should check the queues
        self._room = asyncio.Event()  #: set when a batch was delivered or has failed
        self._sender: asyncio.Task[None] | None = None
        self._deliveries: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close(flush=error is None)

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        headers: RecordHeaders = (),
        timestamp_ms: int | None = None,
    ) -> "asyncio.Future[RecordMetadata]":
        """Put a record into its batch, waiting while the buffer is full; return the future of its delivery.

        :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, or another error of the topic.
        :raises BrokerConnectionError: When no broker can be reached.
        :raises TypeError: When key, value or the value of a header are not bytes, or the timestamp is no integer.
        :raises ValueError: When the timestamp has more than 64 bits, or UTF-8 cannot represent the name of a header.
        """
        check_record(key, value, headers, timestamp_ms)
        described = await self._topic(topic, partition)
        created_ms = self._clock.wall_ms() if timestamp_ms is None else timestamp_ms
        record = Record(0, created_ms, key, value, headers)
        tp = TopicPartition(topic, self._choose(described, record, partition))
        while self._accumulator.size_bytes >= self._buffer_size_bytes:
            self._room.clear()
            await self._room.wait()
        delivery: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
        if self._accumulator.append(tp, record, delivery, self._clock.monotonic_ms()):
            self._wake()
            await asyncio.sleep(0)  # once per batch, so that sending starts while more records are put in
        return delivery

    async def send_and_wait(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        headers: RecordHeaders = (),
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Send one record and wait until it is stored.

        :raises KafkaError: The error if it was not stored.
        :raises BrokerConnectionError: When no broker was reached for as long as the delivery timeout.
        """
        delivery = await self.send(
            topic, value, key, partition=partition, headers=headers, timestamp_ms=timestamp_ms
        )
        return await delivery

    async def flush(self) -> None:
        """Send all records put in so far and wait until each is delivered or has failed."""
        waiters = self._accumulator.last_waiters()
        if not waiters:
            return
        self._flushing += 1
        self._wake()
        try:
            await asyncio.wait(waiters)
        finally:
            self._flushing -= 1

    async def close(self, *, flush: bool = True) -> None:
        """Stop. Call `flush` first: undelivered records are dropped and their futures cancelled."""
        if flush:
            await self.flush()
        tasks = [task for task in (self._sender, *self._deliveries) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._accumulator.abandon()

    async def _topic(self, name: str, partition: int | None) -> TopicInfo:
        """Return the topic; wait for it, and for the partition, which a broker that lags behind may not know yet."""
        known = self.cluster.cached_topic(name)
        if known is not None and (partition is None or known.find_partition(partition) is not None):
            return known

        async def ask() -> TopicInfo | KafkaError:
            try:
                return await self.cluster.topic(name, auto_create=True)
            except KafkaError as refusal:
                return refusal

        async def attempt() -> TopicInfo:
            # brokers are retried for longer than an unknown topic
            result = await self.cluster.retrying(ask)
            if isinstance(result, KafkaError):
                raise result
            if partition is not None:
                result.partition(partition)
            return result

        return await self.cluster.retrying(attempt, self._topic_timeout_ms)

    def _choose(self, topic: TopicInfo, record: Record, partition: int | None) -> int:
        if partition is not None:
            return topic.partition(partition).partition_index
        if record.key is not None:
            return partition_for_key(record.key, len(topic.partitions))
        led = [info.partition_index for info in topic.partitions if info.leader != NO_LEADER]
        everywhere = led or range(len(topic.partitions))
        return self._sticky.partition(topic.name, everywhere, record_size_bytes(record))

    def _wake(self) -> None:
        self._work.set()
        if self._sender is None:
            self._sender = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        """Hand each ready batch to a task of its broker, then wait for the next."""
        while True:
            self._work.clear()
            batches = self._accumulator.ready(self._clock.monotonic_ms(), flushing=self._flushing > 0)
            if batches:
                await self._dispatch(batches)
            await self._wait_for_work()

    async def _wait_for_work(self) -> None:
        due_ms = self._accumulator.next_due_ms(flushing=self._flushing > 0)
        timeout_s = None if due_ms is None else max(0, due_ms - self._clock.monotonic_ms()) / 1000
        try:
            async with asyncio.timeout(timeout_s):
                await self._work.wait()
        except TimeoutError:
            pass

    async def _dispatch(self, batches: list[Batch]) -> None:
        by_leader: defaultdict[int, list[Batch]] = defaultdict(list)
        for batch in batches:
            try:
                by_leader[await self.cluster.leader(batch.tp)].append(batch)
            except Exception as error:
                self._failed(batch, error)
        for leader, theirs in by_leader.items():
            task = asyncio.ensure_future(self._deliver(leader, theirs))
            self._deliveries.add(task)
            task.add_done_callback(self._deliveries.discard)

    async def _identify(self) -> None:
        """Fetch a producer id if there is none; its sequences start at 0."""
        async with self._identifying:
            if self._identity is None and self._acks == ACKS_ALL:
                self._identity = await idempotent_identity(self.cluster, _LANE)
                self._sequences.clear()

    def _stamped(self, batch: Batch) -> bool:
        """Whether the batch could be encoded; else its records have failed."""
        try:
            self._stamp(batch)
        except Exception as error:
            self._failed(batch, error)
            return False
        return True

    def _stamp(self, batch: Batch) -> None:
        if batch.identity is None and self._identity is not None:
            batch.identity = self._identity
            batch.base_sequence = self._sequences[batch.tp]
            self._sequences[batch.tp] = (batch.base_sequence + len(batch.records)) % SEQUENCE_LIMIT
        batch.encode(self._compression)
        batch.attempts += 1

    async def _deliver(self, leader: int, batches: list[Batch]) -> None:
        try:
            # Here and not when a batch is queued: a batch that fails meanwhile may remove the producer id.
            await self._identify()
        except Exception as error:
            for batch in batches:
                self._failed(batch, error)
            return
        stamped = [batch for batch in batches if self._stamped(batch)]
        try:
            outcomes: _Outcomes = await self._exchange(leader, stamped) if stamped else {}
        except Exception as error:
            outcomes = {batch.tp: error for batch in stamped}
        for batch in stamped:
            self._complete(batch, outcomes.get(batch.tp))

    async def _exchange(self, leader: int, batches: list[Batch]) -> _Outcomes:
        metadata = self.cluster.metadata
        connection = await self.cluster.connection(leader, _LANE)
        request = produce_request(batches, metadata, self._acks, self.cluster.request_timeout_ms)
        newest = version_max(request)
        if self._acks == 0:
            await connection.send_unanswered(request, version_max=newest)
            return {batch.tp: PartitionProduceResponse(base_offset=-1) for batch in batches}
        return outcomes_by_partition(await connection.send(request, version_max=newest), metadata)

    def _complete(self, batch: Batch, outcome: PartitionProduceResponse | Exception | None) -> None:
        if outcome is None:
            missing = f"the Produce response lacks partition {batch.tp}"
            outcome = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, missing)
        if isinstance(outcome, Exception):
            return self._failed(batch, outcome)
        error = error_for(outcome.error_code, outcome.error_message or f"records for partition {batch.tp}")
        if error is None:
            return self._delivered(batch, outcome.base_offset, outcome.log_append_time_ms)
        if (
            error.code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER
        ):  # stored long ago: the broker no longer knows the offset
            return self._delivered(batch, -1, -1)
        if error.code in _TOO_LARGE and len(batch.records) > 1:
            return self._replace(batch, batch.halves())
        if error.code in _RECORDS_REFUSED:
            return self._refused(batch, error, _record_errors(outcome, error, len(batch.records)))
        if error.code in _SEQUENCE_REFUSED:
            return self._sequence_refused(batch, error)
        return self._failed(batch, error)

    def _refused(self, batch: Batch, error: KafkaError, errors: Mapping[int, KafkaError]) -> None:
        """Fail the refused records and send the others again; without record errors in the response, find them by
        halving.
        """
        if not errors and len(batch.records) > 1:
            return self._replace(batch, batch.halves())
        rest = batch.without(errors)
        if errors and rest.records:
            return self._replace(batch, [rest])
        return self._failed(batch, error, errors)

    def _sequence_refused(self, batch: Batch, error: KafkaError) -> None:
        """Give up the producer id, with which every later batch would fail, too; send the batch again with another one,
        unless an earlier attempt may have stored it.
        """
        if batch.identity == self._identity:
            self._identity = None
        if batch.attempts == 1:
            batch.unstamp()
            if self._retried(batch):
                return
        self._failed(batch, error)

    def _delivered(self, batch: Batch, base_offset: int, append_time_ms: int) -> None:
        def deliver(index: int, waiter: "asyncio.Future[RecordMetadata]") -> None:
            offset = base_offset + index if base_offset >= 0 else -1
            timestamp_ms = batch.records[index].timestamp_ms if append_time_ms < 0 else append_time_ms
            waiter.set_result(RecordMetadata(batch.tp, offset, timestamp_ms))

        self._finish(batch, deliver)

    def _failed(
        self, batch: Batch, error: Exception, record_errors: Mapping[int, Exception] | None = None
    ) -> None:
        """Send the batch again if the error is retriable and there is time; else fail its records."""
        if is_retriable_elsewhere(error) and self._retried(batch):
            return
        was_never_sent = batch.attempts == 0
        is_refused = was_never_sent or (batch.failures == 0 and _is_refusal(error))
        self._reset_sequence(batch, is_refused=is_refused)

        def fail(index: int, waiter: "asyncio.Future[RecordMetadata]") -> None:
            waiter.set_exception((record_errors or {}).get(index, error))

        self._finish(batch, fail)

    def _retried(self, batch: Batch) -> bool:
        """Send the batch again after a pause and return True, unless its time is over."""
        now_ms = self._clock.monotonic_ms()
        if now_ms >= batch.created_ms + self._delivery_timeout_ms:
            return False
        self.cluster.invalidate()
        batch.failures += 1
        pause_ms = self.cluster.retry.pause_ms(batch.failures)
        self._accumulator.retry(batch, now_ms + round(pause_ms))
        self._work.set()
        return True

    def _replace(self, batch: Batch, parts: Sequence[Batch]) -> None:
        self._reset_sequence(batch, is_refused=True)
        self._accumulator.replace(batch, parts)
        self._work.set()

    def _reset_sequence(self, batch: Batch, *, is_refused: bool) -> None:
        """Use the sequence of a batch that was not stored again; if it may have been stored, use another producer id.

        Otherwise the broker would take the next batch for a retry of this one, and acknowledge it without storing it.
        """
        if batch.identity is None or batch.identity != self._identity:
            return
        if is_refused and batch.attempts <= 1:
            self._sequences[batch.tp] = batch.base_sequence
        else:
            self._identity = None

    def _finish(
        self, batch: Batch, complete: Callable[[int, "asyncio.Future[RecordMetadata]"], None]
    ) -> None:
        self._accumulator.release(batch)
        for index, waiter in enumerate(batch.waiters):
            if not waiter.done():  # else the caller was cancelled
                complete(index, waiter)
        for waiter, error in batch.refused:
            if not waiter.done():
                waiter.set_exception(error)
        self._room.set()
        self._work.set()


def _is_refusal(error: Exception) -> bool:
    """Whether the records are certainly not stored: a timeout or a change of the leader may follow an append."""
    is_certain = isinstance(error, KafkaError) and error.code is not ErrorCode.UNKNOWN_SERVER_ERROR
    return is_certain and not is_retriable_elsewhere(error)


def _record_errors(
    response: PartitionProduceResponse, error: KafkaError, records_count: int
) -> dict[int, KafkaError]:
    """Return the errors of single records by their index in the batch; empty for brokers before 2.4."""
    return {
        record_error.batch_index: KafkaError(
            error.code, record_error.batch_index_error_message or error.message
        )
        for record_error in response.record_errors
        if 0 <= record_error.batch_index < records_count
    }
