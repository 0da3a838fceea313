"""Sends record batches that are already encoded: in order per partition, one of each partition in flight at a time.

For bulk writers, which encode whole columns. To send single records, use `barnabas.client.producer.producer`.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias

from barnabas.base.ids import ZERO_UUID, TopicPartition
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import error_for, is_retriable_elsewhere
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.wire.records.batch import SEQUENCE_LIMIT, BatchHeader, iterate_headers
from barnabas.wire.records.record import Record, decode_records, encode_batch

#: A batch as it is sent.
Encoded: TypeAlias = bytes | bytearray | memoryview

BUFFER_SIZE_BYTES = 32 * 1024 * 1024
REQUEST_SIZE_BYTES_MAX = 1024 * 1024
DELIVERY_TIMEOUT_MS = 120_000
#: The last version that names topics, and in which the broker does not add partitions to a transaction itself.
_VERSION_MAX = 11
_LANE = "produce"

#: Errors that a batch is too large; its halves may be accepted.
_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


@dataclass(eq=False)
class _InFlightBatch:
    """A batch in flight."""

    tp: TopicPartition
    data: Encoded
    due_ms: int  #: not sent before
    give_up_ms: int
    failures: int = 0


class BatchSender:
    """Sends to the given cluster. Use as an async context manager; leaving it does not wait for batches.

    A batch that carries a producer id and sequence is stored once, however often it is sent. After the first
    error that is not retriable, `put` and `flush` raise it.
    """

    def __init__(
        self,
        cluster: ClusterClient,
        *,
        transactional_id: str | None = None,
        acks: int = -1,
        buffer_size_bytes: int = BUFFER_SIZE_BYTES,
        request_size_bytes_max: int = REQUEST_SIZE_BYTES_MAX,
        delivery_timeout_ms: int = DELIVERY_TIMEOUT_MS,
    ) -> None:
        self.cluster = cluster
        self._transactional_id = transactional_id
        self._acks = acks
        self._buffer_size_bytes = buffer_size_bytes
        self._request_size_bytes_max = request_size_bytes_max
        self._delivery_timeout_ms = delivery_timeout_ms
        self._queues: dict[TopicPartition, deque[_InFlightBatch]] = {}
        self._in_flight: set[TopicPartition] = set()
        self._size_bytes = 0  #: of all batches that are not stored yet
        self._failure: BaseException | None = None
        self._work = asyncio.Event()
        self._progress = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._spawn(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def put(self, batches: Iterable[tuple[TopicPartition, Encoded]]) -> None:
        """Put batches behind those of their partitions; wait while the buffer is full.

        :raises KafkaError: The error of an earlier batch that was not stored.
        :raises BrokerConnectionError: When no broker was reached for as long as the delivery timeout.
        """
        for tp, data in batches:
            await self._wait_until(lambda: self._size_bytes < self._buffer_size_bytes)
            now_ms = self._now_ms()
            sending = _InFlightBatch(tp, data, now_ms, now_ms + self._delivery_timeout_ms)
            self._queues.setdefault(tp, deque()).append(sending)
            self._size_bytes += len(data)
            self._work.set()

    async def flush(self) -> None:
        """Wait until all batches are stored; raises as `put` does."""
        await self._wait_until(lambda: not self._queues)

    async def _wait_until(self, reached: Callable[[], bool]) -> None:
        while self._failure is None and not reached():
            self._progress.clear()
            await self._progress.wait()
        if self._failure is not None:
            raise self._failure

    def _now_ms(self) -> int:
        return self.cluster.retry.clock.monotonic_ms()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:  # an unexpected one: nothing would ever be sent again
            self._failure = self._failure or error
            self._progress.set()

    async def _run(self) -> None:
        """Hand the batches that are due to tasks of their leaders, then wait for the next."""
        while self._failure is None:
            self._work.clear()
            await self._dispatch()
            later_ms = [queue[0].due_ms for tp, queue in self._queues.items() if tp not in self._in_flight]
            timeout_s = max(0, min(later_ms) - self._now_ms()) / 1000 if later_ms else None
            try:
                async with asyncio.timeout(timeout_s):
                    await self._work.wait()
            except TimeoutError:
                pass

    async def _dispatch(self) -> None:
        now_ms = self._now_ms()
        by_leader: defaultdict[int, list[_InFlightBatch]] = defaultdict(list)
        due = [
            queue[0]
            for tp, queue in self._queues.items()
            if tp not in self._in_flight and queue[0].due_ms <= now_ms
        ]
        for sending in due:
            try:
                by_leader[await self.cluster.leader(sending.tp)].append(sending)
            except (KafkaError, ConnectionError) as error:
                self._failed(sending, error)
        for leader, sendings in by_leader.items():
            for request in self._requests(sendings):
                self._in_flight.update(sending.tp for sending in request)
                self._spawn(self._deliver(leader, request))

    def _requests(self, sendings: list[_InFlightBatch]) -> Iterable[list[_InFlightBatch]]:
        """Return the batches in groups of at most the maximum request size; a larger batch is a separate group."""
        request: list[_InFlightBatch] = []
        size_bytes = 0
        for sending in sendings:
            if request and size_bytes + len(sending.data) > self._request_size_bytes_max:
                yield request
                request, size_bytes = [], 0
            request.append(sending)
            size_bytes += len(sending.data)
        yield request

    async def _deliver(self, leader: int, sendings: list[_InFlightBatch]) -> None:
        outcomes: dict[TopicPartition, PartitionProduceResponse] = {}
        failure: Exception | None = None
        try:
            outcomes = await self._exchange(leader, sendings)
        except (KafkaError, ConnectionError) as error:
            failure = error
        for sending in sendings:
            self._in_flight.discard(sending.tp)
            if failure is not None:
                self._failed(sending, failure)
            else:
                self._complete(sending, outcomes.get(sending.tp))
        self._work.set()

    async def _exchange(
        self, leader: int, sendings: list[_InFlightBatch]
    ) -> dict[TopicPartition, PartitionProduceResponse]:
        topics: dict[str, TopicProduceData] = {}
        for sending in sendings:
            name, index = sending.tp
            data = topics.setdefault(name, TopicProduceData(name=name, topic_id=ZERO_UUID)).partition_data
            data.append(PartitionProduceData(index=index, records=sending.data))
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self._acks,
            timeout_ms=self.cluster.request_timeout_ms,
            topic_data=list(topics.values()),
        )
        connection = await self.cluster.connection(leader, _LANE)
        if self._acks == 0:
            await connection.send_unanswered(request, version_max=_VERSION_MAX)
            return {sending.tp: PartitionProduceResponse() for sending in sendings}
        response: ProduceResponse = await connection.send(request, version_max=_VERSION_MAX)
        return {
            TopicPartition(topic.name, partition.index): partition
            for topic in response.responses
            for partition in topic.partition_responses
        }

    def _complete(self, sending: _InFlightBatch, response: PartitionProduceResponse | None) -> None:
        tp = sending.tp
        if response is None:
            missing = f"the Produce response lacks partition {tp}"
            return self._failed(sending, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, missing))
        reasons = [record_error.batch_index_error_message for record_error in response.record_errors]
        about = next(filter(None, [*reasons, response.error_message]), f"{_count(sending.data)} records")
        error = error_for(response.error_code, f"partition {tp}: {about}")
        if error is None or error.code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            return self._stored(sending)
        if error.code in _TOO_LARGE and _count(sending.data) > 1:
            return self._split(sending)
        if error.code in _TOO_LARGE:
            size = f"partition {tp}: a record of {len(sending.data)} bytes is larger than max.message.bytes there"
            error = KafkaError(error.code, size)
        return self._failed(sending, error)

    def _stored(self, sending: _InFlightBatch) -> None:
        queue = self._queues[sending.tp]
        assert queue[0] is sending
        queue.popleft()
        if not queue:
            del self._queues[sending.tp]
        self._size_bytes -= len(sending.data)
        self._progress.set()

    def _split(self, sending: _InFlightBatch) -> None:
        """Replace a refused batch by two smaller ones; the records keep their sequences."""
        queue = self._queues[sending.tp]
        queue.popleft()
        halves = split_batch(sending.data)
        queue.extendleft(
            _InFlightBatch(sending.tp, data, sending.due_ms, sending.give_up_ms) for data in reversed(halves)
        )
        self._size_bytes += sum(map(len, halves)) - len(sending.data)

    def _failed(self, sending: _InFlightBatch, error: Exception) -> None:
        """Send the batch again if the error is retriable and there is time."""
        now_ms = self._now_ms()
        if is_retriable_elsewhere(error) and now_ms < sending.give_up_ms:
            self.cluster.invalidate()
            sending.failures += 1
            sending.due_ms = now_ms + round(self.cluster.retry.pause_ms(sending.failures))
            return
        self._failure = self._failure or error
        self._progress.set()


def split_batch(data: Encoded) -> tuple[bytearray, bytearray]:
    """Return the records of a batch in two batches, each with its part of the sequence."""
    header = _header(data)
    records = decode_records(data)
    middle = len(records) // 2
    return _encode(header, records[:middle], 0), _encode(header, records[middle:], middle)


def _encode(header: BatchHeader, records: list[Record], behind: int) -> bytearray:
    sequence = header.base_sequence
    return encode_batch(
        records,
        compression=header.compression,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=sequence if sequence < 0 else (sequence + behind) % SEQUENCE_LIMIT,
        transactional=header.is_transactional,
    )


def _header(data: Encoded) -> BatchHeader:
    return next(header for _, header in iterate_headers(data))


def _count(data: Encoded) -> int:
    return _header(data).records_count
