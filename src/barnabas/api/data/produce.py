"""Produce (0), v3-v13: append one record batch to each named partition.

v5: log start offset.  v8: errors of single records (KIP-467).  v10: the current leader (KIP-951).  v12: implicit
transactions (KIP-890).  v13: topic ids (KIP-516).
Errors, per partition: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, NOT_LEADER_OR_FOLLOWER,
INVALID_REQUIRED_ACKS, INVALID_TOPIC_EXCEPTION, NOT_ENOUGH_REPLICAS, REQUEST_TIMED_OUT, INVALID_TXN_STATE,
TRANSACTIONAL_ID_AUTHORIZATION_FAILED, UNSUPPORTED_COMPRESSION_TYPE (zstd before v7), CORRUPT_MESSAGE, INVALID_RECORD,
INVALID_TIMESTAMP, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER,
KAFKA_STORAGE_ERROR, INVALID_PRODUCER_ID_MAPPING, and errors of the transaction coordinator, such as
TRANSACTION_ABORTABLE (v11). With acks=0 there is no response; an error closes the connection.
"""

import asyncio
from collections.abc import Awaitable, Generator, Iterator
from contextlib import suppress
from typing import NamedTuple, TypeAlias

from barnabas.api.context import EncodedResponse, RequestContext
from barnabas.api.data.leader_hints import LeaderHint, endpoints_of
from barnabas.api.data.permissions import ask_to_produce, must_ask_to_produce
from barnabas.api.data.produce_codec import (
    FIRST_VERSION_WITH_TOPIC_IDS,
    PartitionResult,
    ProduceData,
    TopicResults,
    read_request,
    write_response,
)
from barnabas.api.data.produce_errors import failed, name_leaders
from barnabas.api.data.transactional_produce import (
    AT_ONCE_COUNT,
    StartedWrite,
    has_transaction,
    is_large,
    start_write,
    start_write_in_turns,
    support_of,
    verification_of,
)
from barnabas.api.data.writable_partition import find_writable
from barnabas.api.registry import serves
from barnabas.base.buffers import Buffer
from barnabas.log.append_info import AppendInfo
from barnabas.log.producers.producer_state_manager import VerificationGuard
from barnabas.log.record_validation import InvalidRecords
from barnabas.log.validation import ValidatedBatch
from barnabas.replication.acknowledgement import acknowledged
from barnabas.replication.partition import ALL_REPLICAS, Partition
from barnabas.replication.transaction_verification import (
    TransactionalWrite,
    Verified,
    finish_verification,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.framing import SCRATCH_BYTES
from barnabas.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.wire.records.batch import compression_of
from barnabas.wire.records.compression import Compression

NO_RESPONSE = 0  #: acks of a producer that expects no response
FIRST_VERSION_WITH_ZSTD = 7

#: Maximum number of topics and partitions of a request; reading more would delay other clients.
ELEMENTS_MAX = 20_000

#: Maximum number of record errors in a response: a compressed batch of a kilobyte can have a thousand.
RECORD_ERRORS_MAX = 10_000

OptionalResponse: TypeAlias = EncodedResponse | None


def error_response(request: ProduceRequest, error: KafkaError) -> ProduceResponse:
    response = ProduceResponse()
    for topic in request.topic_data:
        responses = [failed(data.index, error) for data in topic.partition_data]
        response.responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=responses)
        )
    return response


def fast_path(
    context: RequestContext, frame: memoryview, position: int
) -> OptionalResponse | Awaitable[OptionalResponse]:
    """Read the request in place, append its batches and write the response.

    Until the first wait the records are views of the network buffer; requests that wait keep copies.

    :raises DecodeError: If the request cannot be read.
    """
    return _produce(context, read_request(frame, position, context.api_version, ELEMENTS_MAX))


def _is_unanswered(request: ProduceRequest) -> bool:
    return request.acks == 0


@serves(
    ProduceRequest,
    ProduceResponse,
    3,
    13,
    error_response=error_response,
    fast_path=fast_path,
    is_unanswered=_is_unanswered,
    carries_records=True,
)
async def handle(context: RequestContext, request: ProduceRequest) -> OptionalResponse:
    """Handle a decoded request, which interceptors get."""
    by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    topics = [
        (
            topic.topic_id if by_id else topic.name,
            [
                (data.index, None if data.records is None else _writable(data.records))
                for data in topic.partition_data
            ],
        )
        for topic in request.topic_data
    ]
    data = ProduceData(request.transactional_id, request.acks, request.timeout_ms, topics)
    response = _produce(context, data)
    return response if response is None or isinstance(response, EncodedResponse) else await response


def _produce(context: RequestContext, request: ProduceData) -> OptionalResponse | Awaitable[OptionalResponse]:
    production = _Production(context, request)
    if context.broker.asks_authorizer and must_ask_to_produce(context, request):
        production.keep_records()
        return _ask_and_produce(context, request)
    return production.run_transactional() if has_transaction(request.topics) else production.run()


async def _ask_and_produce(context: RequestContext, request: ProduceData) -> OptionalResponse:
    await ask_to_produce(context, request)
    response = _produce(context, request)
    return response if response is None or isinstance(response, EncodedResponse) else await response


class _Costly(NamedTuple):
    """A batch that takes long to validate."""

    partition: Partition
    records: memoryview


class _Wait(NamedTuple):
    """An appended batch that waits for the disk and the in-sync replicas."""

    partition: Partition
    flushed: "asyncio.Future[None] | None"
    replicated: "asyncio.Future[None] | None"
    results: list[PartitionResult]
    at: int

    async def end(self, timeout_ms: int) -> None:
        """Wait; `results[at]` becomes an error if the disk fails, or the replicas take too long."""
        partition = self.partition
        try:
            await acknowledged(self.flushed, self.replicated)
        except TimeoutError:
            message = f"The in-sync replicas did not acknowledge the records within {timeout_ms} ms."
            self._fail(KafkaError(ErrorCode.REQUEST_TIMED_OUT, message))
        except OSError as error:
            message = f"{partition.topic}-{partition.index} could not be flushed: {error.strerror}."
            self._fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message))
        except KafkaError as error:
            self._fail(error)

    def _fail(self, error: KafkaError) -> None:
        self.results[self.at] = failed(self.partition.index, error)


#: Yields None after each partition, or a costly batch, for which it expects the validated one.
_Steps: TypeAlias = Generator[_Costly | None, ValidatedBatch | None, None]


class _Production:
    """One Produce request: append everything, then wait for replicas and disks if necessary."""

    __slots__ = ("_context", "_record_errors_left", "_request", "_results", "_verified", "_waits")

    def __init__(self, context: RequestContext, request: ProduceData) -> None:
        self._context = context
        self._request = request
        self._results: list[TopicResults] = []
        self._waits: list[_Wait] = []
        self._record_errors_left = RECORD_ERRORS_MAX
        self._verified: Verified | None = None

    def run(self) -> OptionalResponse | Awaitable[OptionalResponse]:
        """Append everything within this turn, or the rest in later turns if it takes long."""
        steps, turns = self._append_each(), self._context.broker.turns
        for costly in steps:
            if costly is not None:
                self.keep_records()
                return self._run_later(steps, costly._replace(records=self._kept(costly.records)))
            if turns.must_yield():
                self.keep_records()
                return self._run_later(steps, None)
        if not self._waits:
            return self._respond()
        self._context.needs_task = is_large(self._request.topics)
        return self._respond_later()

    def run_transactional(self) -> OptionalResponse | Awaitable[OptionalResponse]:
        """As `run`, after the transaction coordinator has confirmed the write if it must be asked."""
        if is_large(self._request.topics):
            self.keep_records()
            return self._run_large_transactional()
        try:
            started = start_write(self._context, self._request)
        except KafkaError as error:
            for _ in self._fail_each(error):
                pass
            return self._respond()
        write = self._write_to_confirm(started)
        if write is None:
            return self.run()
        self.keep_records()
        return self._run_later(self._append_each(), None, write)

    async def _run_large_transactional(self) -> OptionalResponse:
        try:
            started = await start_write_in_turns(self._context, self._request)
        except KafkaError as error:
            async for _ in self._context.each(self._fail_each(error)):
                pass
            return await self._respond_later()
        return await self._run_later(self._append_each(), None, self._write_to_confirm(started))

    def _write_to_confirm(self, started: StartedWrite | None) -> TransactionalWrite | None:
        """Return the write if the transaction coordinator must confirm it."""
        if started is None:
            return None
        write, self._verified = started
        has_verifier = self._context.broker.transaction_verifier is not None
        return write if self._verified.verifications and has_verifier else None

    def keep_records(self) -> None:
        """Copy the records, so that they outlive the network buffer. A large frame has its own buffer."""
        if self._context.size_bytes <= SCRATCH_BYTES:
            for _, partitions in self._request.topics:
                partitions[:] = [(index, records and self._kept(records)) for index, records in partitions]

    def _kept(self, records: memoryview) -> memoryview:
        return _copied(records) if self._context.size_bytes <= SCRATCH_BYTES else records

    async def _run_later(
        self, steps: _Steps, costly: _Costly | None, write: TransactionalWrite | None = None
    ) -> OptionalResponse:
        if write is not None:
            verifier, verified = self._context.broker.transaction_verifier, self._verified
            assert verifier is not None
            assert verified is not None
            await finish_verification(verifier, write, support_of(self._context.api_version), verified)
        with suppress(StopIteration):
            while True:
                if costly is None:
                    await self._context.checkpoint()
                    costly = next(steps)
                    continue
                try:
                    batch = await _validate_in_worker(self._context, costly)
                except KafkaError as error:
                    costly = steps.throw(error)
                else:
                    costly = steps.send(batch)
        return await self._respond_later()

    async def _respond_later(self) -> OptionalResponse:
        await self._wait()
        if self._request.acks == NO_RESPONSE or not is_large(self._request.topics):
            return self._respond()
        context, refused = self._context, self._refused()
        leaders: set[LeaderHint] = set()
        async for at in context.each(range(0, len(refused), AT_ONCE_COUNT)):
            leaders.update(name_leaders(context, refused[at : at + AT_ONCE_COUNT]))
        endpoints = endpoints_of(context, leaders)
        body = context.broker.worker.call(write_response, context.api_version, self._results, endpoints)
        return EncodedResponse(*await body)

    async def _wait(self) -> None:
        """Wait for all partitions, one after another: their deadlines do not depend on that."""
        try:
            for wait in self._waits:
                await wait.end(self._request.timeout_ms)
        finally:
            for wait in self._waits:  # if the connection has ended
                if wait.replicated is not None:
                    wait.replicated.cancel()

    def _fail_each(self, error: KafkaError) -> Iterator[None]:
        """Set the error for every partition, some in each step."""
        for topic, partitions in self._request.topics:
            results: list[PartitionResult] = []
            self._results.append((topic, results))
            for at in range(0, len(partitions), AT_ONCE_COUNT):
                results += [failed(index, error) for index, _ in partitions[at : at + AT_ONCE_COUNT]]
                yield

    def _respond(self) -> OptionalResponse:
        context, refused = self._context, self._refused()
        if self._request.acks == NO_RESPONSE:
            # Closing the connection is the only way to report an error to a producer that expects no response.
            context.close_after = bool(refused)
            return None
        endpoints = endpoints_of(context, name_leaders(context, refused)) if refused else ()
        return EncodedResponse(*write_response(context.api_version, self._results, endpoints))

    def _refused(self) -> list[tuple[str | bytes, PartitionProduceResponse]]:
        return [
            (topic, result)
            for topic, results in self._results
            for result in results
            if not isinstance(result, tuple)
        ]

    def _append_each(self) -> _Steps:
        """Append one batch after another, each a step.

        A step that yields a costly batch expects the validated one.
        """
        for topic, partitions in self._request.topics:
            results: list[PartitionResult] = []
            self._results.append((topic, results))
            for index, records in partitions:
                try:
                    partition = find_writable(self._context, topic, index)
                    batch = _check_request(self._context.api_version, partition, self._request.acks, records)
                    verification = (
                        None if self._verified is None else verification_of(self._verified, partition)
                    )
                except KafkaError as error:
                    results.append(failed(index, error))
                    yield None
                    continue
                try:
                    validated = partition.validate_inline(batch, self._request.acks)
                    if validated is None:
                        validated = yield _Costly(partition, batch)
                        assert validated is not None
                    self._append(partition, validated, verification, results)
                except KafkaError as error:
                    results.append(self._rejected(index, error, partition))
                yield None

    def _rejected(self, index: int, error: KafkaError, partition: Partition) -> PartitionProduceResponse:
        """Return the error of a batch, with as many errors of its records as the response has room for."""
        response = failed(index, error, partition)
        if isinstance(error, InvalidRecords):
            record_errors = error.record_errors[: self._record_errors_left]
            self._record_errors_left -= len(record_errors)
            response.record_errors = [
                BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=what)
                for at, what in record_errors
            ]
        return response

    def _append(
        self,
        partition: Partition,
        batch: ValidatedBatch,
        verification: VerificationGuard | None,
        results: list[PartitionResult],
    ) -> None:
        context, acks = self._context, self._request.acks
        tracer = context.broker.tracer
        started_ns = tracer.now_ns() if tracer.enabled else 0
        appended = partition.append_as_leader(batch, acks, verification)
        results.append(
            (partition.index, appended.first_offset, appended.log_append_time_ms, appended.log_start_offset)
        )
        if tracer.enabled:
            _trace_append(context, partition, appended, started_ns)
        needs_flush = partition.log.needs_flush
        replicated = None
        if acks == ALL_REPLICAS:
            end_offset, timeout_ms = appended.last_offset + 1, self._request.timeout_ms
            replicated = context.broker.replicas.when_replicated(partition, end_offset, timeout_ms)
        if needs_flush or replicated is not None:
            flushed = context.broker.flusher.when_flushed(partition.log) if needs_flush else None
            self._waits.append(_Wait(partition, flushed, replicated, results, len(results) - 1))


async def _validate_in_worker(context: RequestContext, costly: _Costly) -> ValidatedBatch:
    """Validate a batch while the event loop serves other clients.

    :raises KafkaError: If the batch is not valid; NOT_LEADER_OR_FOLLOWER if leadership changed meanwhile.
    """
    partition = costly.partition
    batch = await context.broker.record_worker.call(partition.log.validate, costly.records)
    partition.check_leader()
    return batch


def _check_request(version: int, partition: Partition, acks: int, records: memoryview | None) -> memoryview:
    """Return the records if the request may append them."""
    if records is None:
        message = f"The request has no records for {partition.topic}-{partition.index}."
        raise KafkaError(ErrorCode.INVALID_RECORD, message)
    if version < FIRST_VERSION_WITH_ZSTD and compression_of(records) == Compression.ZSTD:
        message = f"Produce version {version} does not support zstd: use version {FIRST_VERSION_WITH_ZSTD}."
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, message)
    if acks not in (1, ALL_REPLICAS, NO_RESPONSE):
        message = f"acks={acks} is invalid: it must be -1 (all), 0 (none) or 1 (leader)."
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, message)
    return records


def _trace_append(
    context: RequestContext, partition: Partition, appended: AppendInfo, started_ns: int
) -> None:
    context.broker.tracer.record(
        "barnabas.produce.append",
        started_ns,
        context.span,
        topic=partition.topic,
        partition=partition.index,
        record_count=appended.last_offset - appended.first_offset + 1,
        base_offset=appended.first_offset,
    )


def _writable(records: Buffer) -> memoryview:
    """Return the records as a view that offsets can be written into."""
    return records if isinstance(records, memoryview) else _copied(records)


def _copied(records: Buffer) -> memoryview:
    return memoryview(bytearray(records))
