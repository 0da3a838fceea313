"""Produce (0), v3-v13: append one record batch to each partition named.

v5: log start offset.  v8: errors of single records (KIP-467).  v10: the current leader (KIP-951).  v12: implicit
transactions (KIP-890).  v13: topic ids (KIP-516).
Errors, per partition: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID,
NOT_LEADER_OR_FOLLOWER, INVALID_REQUIRED_ACKS, INVALID_TOPIC_EXCEPTION, NOT_ENOUGH_REPLICAS, REQUEST_TIMED_OUT,
INVALID_TXN_STATE, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, UNSUPPORTED_COMPRESSION_TYPE (zstd before v7),
CORRUPT_MESSAGE, INVALID_RECORD, INVALID_TIMESTAMP, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE,
INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, KAFKA_STORAGE_ERROR, INVALID_PRODUCER_ID_MAPPING, and what
the coordinator says of a transaction, such as TRANSACTION_ABORTABLE (v11). With acks=0 nothing is answered; an
error closes the connection.
"""

import asyncio
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor

from barnabas.api.authorization import require
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.base.buffers import Buffer
from barnabas.log.record_validation import InvalidRecords
from barnabas.log.validation import ValidatedBatch
from barnabas.metadata.topics import INTERNAL_TOPICS
from barnabas.replication.partition import ALL_REPLICAS, Partition
from barnabas.replication.transaction_verification import (
    TransactionalWrite,
    TransactionSupport,
    Verified,
    finish_verification,
    start_verification,
)
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.wire.records.batch import BATCH_HEADER_BYTES, COMPRESSION_MASK, read_header
from barnabas.wire.records.compression import Compression

NO_ANSWER = 0
FIRST_VERSION_WITH_ZSTD = 7
FIRST_VERSION_WITH_TRANSACTION_ABORTABLE = 11
FIRST_VERSION_WITH_IMPLICIT_TRANSACTIONS = 12
FIRST_VERSION_WITH_TOPIC_IDS = 13
VERIFICATION_ENABLED = "transaction.partition.verification.enable"
NO_OFFSET = -1

#: Threads that check batches which would hold up the event loop; each may unpack as much as a request can have.
_VALIDATORS = ThreadPoolExecutor(2, thread_name_prefix="validate")

#: Errors that come without the log's start offset, as in Apache Kafka; producers look at it for the others.
_START_NOT_TOLD = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR,
}  # fmt: skip

#: Where in a batch the low byte of its attributes stands, and the bit of a transactional one.
_ATTRIBUTES_POSITION, _TRANSACTIONAL_BIT = 22, 0x10


def refuse(request: ProduceRequest, error: KafkaError) -> ProduceResponse:
    """Every partition, in error."""
    response = ProduceResponse()
    for topic in request.topic_data:
        answers = [_refused(data.index, error) for data in topic.partition_data]
        response.responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
        )
    return response


@serves(ProduceRequest, ProduceResponse, 3, 13, refuse=refuse)
async def handle(context: RequestContext, request: ProduceRequest) -> ProduceResponse | None:
    """Append everything first, then wait for replicas and disks where the request or the topic wants it.

    Until the first wait the records are views of the network buffer; nothing keeps them beyond. When a transaction's
    coordinator must be asked, they are copied first.
    """
    verified = Verified()
    if _has_transaction(request):
        transactional_id = _check_transactional_id(context, request.transactional_id)
        verified = await _verify(context, request, transactional_id)
    response = ProduceResponse()
    waits: list[Awaitable[None]] = []
    for topic in request.topic_data:
        answers = [
            await _append(context, request, topic, data, verified, waits) for data in topic.partition_data
        ]
        response.responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
        )
    if waits:
        await asyncio.gather(*waits)
    return _answer(context, request, response)


def _check_transactional_id(context: RequestContext, transactional_id: str | None) -> str:
    if transactional_id is None:
        message = "Records of a transaction came without a transactional id: nobody is allowed to write them."
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, message)
    require(context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    return transactional_id


async def _verify(context: RequestContext, request: ProduceRequest, transactional_id: str) -> Verified:
    """Make sure that partitions which the transaction writes to for the first time are in it.

    :raises KafkaError: INVALID_PRODUCER_ID_MAPPING for records of more than one producer.
    """
    node, support = context.node, _support(context.api_version)
    if support is not TransactionSupport.IMPLICIT and not node.config.boolean(VERIFICATION_ENABLED):
        return Verified()
    write = _transactional_write(context, request, transactional_id)
    if write is None:
        return Verified()
    started = start_verification(write, support)
    if node.transaction_verifier is not None and started.verifications:
        _keep_records(request)
        await finish_verification(node.transaction_verifier, write, support, started)
    return started


def _support(version: int) -> TransactionSupport:
    if version >= FIRST_VERSION_WITH_IMPLICIT_TRANSACTIONS:
        return TransactionSupport.IMPLICIT
    if version >= FIRST_VERSION_WITH_TRANSACTION_ABORTABLE:
        return TransactionSupport.ABORTABLE
    return TransactionSupport.PLAIN


def _transactional_write(
    context: RequestContext, request: ProduceRequest, transactional_id: str
) -> TransactionalWrite | None:
    """What of the request belongs to a transaction, but for what is refused anyway."""
    sequences: dict[Partition, int] = {}
    producers: set[tuple[int, int]] = set()
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if records is None or len(records) < BATCH_HEADER_BYTES or not is_transactional(records):
                continue
            header = read_header(records)
            try:
                partition = _find(context, topic, data.index)
            except KafkaError:
                continue  # it is told when it is to be appended
            if header.has_producer_id:
                producers.add((header.producer_id, header.producer_epoch))
                sequences[partition] = header.base_sequence
    if len(producers) > 1:
        message = f"Records of a transaction came from {len(producers)} producers: it has only one."
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, message)
    for producer_id, producer_epoch in producers:
        return TransactionalWrite(transactional_id, producer_id, producer_epoch, sequences)
    return None


def _keep_records(request: ProduceRequest) -> None:
    """Have the records outlive the network buffer."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None:
                data.records = memoryview(bytearray(data.records))


def _answer(
    context: RequestContext, request: ProduceRequest, response: ProduceResponse
) -> ProduceResponse | None:
    if request.acks != NO_ANSWER:
        return response
    errors = (answer.error_code for topic in response.responses for answer in topic.partition_responses)
    context.close_after = any(errors)  # all that is left to tell a producer that wants no answers
    return None


async def _append(
    context: RequestContext,
    request: ProduceRequest,
    topic: TopicProduceData,
    data: PartitionProduceData,
    verified: Verified,
    waits: list[Awaitable[None]],
) -> PartitionProduceResponse:
    tracer = context.node.tracer
    started_ns = tracer.now_ns() if tracer.enabled else 0
    try:
        partition = _find(context, topic, data.index)
        records = _records(context, partition, request.acks, data)
    except KafkaError as error:
        return _refused(data.index, error)
    if partition in verified.errors:
        return _refused(data.index, verified.errors[partition])
    try:
        batch = partition.validate_inline(records, request.acks)
        if batch is None:
            batch = await _validate_in_thread(request, partition, data)
        appended = partition.append_as_leader(batch, request.acks, verified.verifications.get(partition))
    except KafkaError as error:
        answer = _refused(data.index, error)
        if error.code not in _START_NOT_TOLD:
            answer.log_start_offset = partition.log.log_start_offset
        return answer
    answer = PartitionProduceResponse(
        index=data.index,
        base_offset=appended.first_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )
    if tracer.enabled:
        tracer.record(
            "barnabas.produce.append",
            started_ns,
            context.span,
            topic=partition.topic,
            partition=partition.index,
            record_count=appended.last_offset - appended.first_offset + 1,
            base_offset=appended.first_offset,
        )
    if partition.log.needs_flush:
        waits.append(_flushed(context, partition, answer))
    if request.acks == ALL_REPLICAS and (reached := partition.replicated(appended.last_offset + 1)):
        waits.append(_replicated(reached, request.timeout_ms, answer))
    return answer


async def _validate_in_thread(
    request: ProduceRequest, partition: Partition, data: PartitionProduceData
) -> ValidatedBatch:
    """Check records that take long, while the event loop serves others.

    :raises KafkaError: What is wrong with them; NOT_LEADER_OR_FOLLOWER if that changed meanwhile.
    """
    _keep_records(request)
    records = data.records
    assert isinstance(records, memoryview)
    batch = await asyncio.get_running_loop().run_in_executor(_VALIDATORS, partition.log.validate, records)
    partition.check_leader()
    return batch


def _find(context: RequestContext, topic: TopicProduceData, index: int) -> Partition:
    node = context.node
    by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    if node.authorizer is not None:
        name = node.image.topic_names.get(topic.topic_id) if by_id else topic.name
        if name is not None:  # an unknown id is no secret
            require(context, AclOperation.WRITE, ResourceType.TOPIC, name)
    partition = (
        node.replicas.partition_by_id(topic.topic_id, index)
        if by_id
        else node.replicas.partition(topic.name, index)
    )
    partition.check_leader()
    if partition.topic in INTERNAL_TOPICS:
        message = f"Topic '{partition.topic}' is the broker's own: clients cannot produce to it."
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
    return partition


def _records(
    context: RequestContext, partition: Partition, acks: int, data: PartitionProduceData
) -> memoryview:
    """What is to be appended, if the request is one that may append it."""
    records = data.records
    if records is None:
        message = f"No records are given for {partition.topic}-{partition.index}."
        raise KafkaError(ErrorCode.INVALID_RECORD, message)
    if not isinstance(records, memoryview):
        records = memoryview(bytearray(records))  # offsets are written into it
    if context.api_version < FIRST_VERSION_WITH_ZSTD and _codec(records) == Compression.ZSTD:
        message = f"Produce version {context.api_version} does not know zstd: version {FIRST_VERSION_WITH_ZSTD} does."
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, message)
    if acks not in (1, ALL_REPLICAS, NO_ANSWER):
        message = f"acks={acks} is not known: -1 (all), 0 (none) and 1 (leader) are."
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, message)
    return records


def _codec(records: memoryview) -> int:
    """The codec that the first batch names; 0 where there is none."""
    return records[_ATTRIBUTES_POSITION] & COMPRESSION_MASK if len(records) > _ATTRIBUTES_POSITION else 0


def _has_transaction(request: ProduceRequest) -> bool:
    partitions = (data for topic in request.topic_data for data in topic.partition_data)
    return any(data.records is not None and is_transactional(data.records) for data in partitions)


def is_transactional(records: Buffer) -> bool:
    """Whether the first batch belongs to a transaction."""
    return len(records) > _ATTRIBUTES_POSITION and bool(records[_ATTRIBUTES_POSITION] & _TRANSACTIONAL_BIT)


async def _flushed(context: RequestContext, partition: Partition, answer: PartitionProduceResponse) -> None:
    try:
        await context.node.flusher.flushed(partition.log)
    except OSError as error:
        message = f"{partition.topic}-{partition.index} could not be flushed: {error.strerror}."
        _turn_into_error(answer, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message))


async def _replicated(
    reached: "asyncio.Future[None]", timeout_ms: int, answer: PartitionProduceResponse
) -> None:
    try:
        await asyncio.wait_for(reached, timeout_ms / 1000)
    except TimeoutError:
        message = f"The in-sync replicas did not have the records within {timeout_ms} ms."
        _turn_into_error(answer, KafkaError(ErrorCode.REQUEST_TIMED_OUT, message))
    except KafkaError as error:
        _turn_into_error(answer, error)


def _turn_into_error(answer: PartitionProduceResponse, error: KafkaError) -> None:
    answer.error_code = error.code
    answer.error_message = error.message
    answer.base_offset = answer.log_start_offset = answer.log_append_time_ms = NO_OFFSET


def _refused(index: int, error: KafkaError) -> PartitionProduceResponse:
    answer = PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=NO_OFFSET,
        log_start_offset=NO_OFFSET,
        error_message=error.message or None,
        current_leader=LeaderIdAndEpoch(),
    )
    if isinstance(error, InvalidRecords):
        answer.record_errors = [
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=what)
            for at, what in error.record_errors
        ]
    return answer
