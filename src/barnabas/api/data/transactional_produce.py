"""The transaction that a Produce request writes to, which its coordinator may have to verify (KIP-890)."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from barnabas.api.authorization import require_now
from barnabas.api.context import RequestContext
from barnabas.api.data.produce_codec import ProduceData, TopicData
from barnabas.api.data.writable_partition import find_writable
from barnabas.log.producers.producer_state_manager import VerificationGuard
from barnabas.replication.partition import Partition
from barnabas.replication.transaction_verification import (
    TransactionalWrite,
    TransactionSupport,
    Verified,
    start_in_partition,
    start_verification,
)
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import BATCH_HEADER_BYTES, is_transactional, read_header

FIRST_VERSION_WITH_TRANSACTION_ABORTABLE = 11
FIRST_VERSION_WITH_IMPLICIT_TRANSACTIONS = 12
VERIFICATION_ENABLED = "transaction.partition.verification.enable"

#: Partitions that are handled before other clients may be served.
AT_ONCE_COUNT = 200

StartedWrite: TypeAlias = tuple[TransactionalWrite, Verified]


def has_transaction(topics: list[TopicData]) -> bool:
    for _, partitions in topics:
        for _, records in partitions:
            if records is not None and is_transactional(records):
                return True
    return False


def is_large(topics: list[TopicData]) -> bool:
    """Whether a request has so many topics and partitions that they are handled in several turns."""
    count = len(topics)
    for _, partitions in topics:
        count += len(partitions)
    return count > AT_ONCE_COUNT


def start_write(context: RequestContext, request: ProduceData) -> StartedWrite | None:
    """Start the verification in each partition; return None if there is nothing to verify.

    :raises KafkaError: TRANSACTIONAL_ID_AUTHORIZATION_FAILED; INVALID_PRODUCER_ID_MAPPING for records of more than one
        producer.
    """
    transactional_id = _id_to_verify(context, request)
    if transactional_id is None:
        return None
    sequences: dict[Partition, int] = {}
    producers: set[tuple[int, int]] = set()
    _find_sequences(context, request.topics, sequences, producers)
    write = _write_of(transactional_id, producers, sequences)
    return None if write is None else (write, start_verification(write, support_of(context.api_version)))


async def start_write_in_turns(context: RequestContext, request: ProduceData) -> StartedWrite | None:
    """As `start_write`, for a large request."""
    transactional_id = _id_to_verify(context, request)
    if transactional_id is None:
        return None
    sequences: dict[Partition, int] = {}
    producers: set[tuple[int, int]] = set()
    async for part in context.each(_parts(request.topics)):
        _find_sequences(context, (part,), sequences, producers)
    write = _write_of(transactional_id, producers, sequences)
    if write is None:
        return None
    started, support = Verified(), support_of(context.api_version)
    async for partition in context.each(sequences):
        start_in_partition(started, write, support, partition)
    return write, started


def _parts(topics: list[TopicData]) -> Iterator[TopicData]:
    for topic, partitions in topics:
        for at in range(0, len(partitions), AT_ONCE_COUNT):
            yield topic, partitions[at : at + AT_ONCE_COUNT]


def _id_to_verify(context: RequestContext, request: ProduceData) -> str | None:
    transactional_id = request.transactional_id
    if transactional_id is None:
        message = "The request has transactional records but no transactional id."
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, message)
    require_now(context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    is_implicit = support_of(context.api_version) is TransactionSupport.IMPLICIT
    return transactional_id if is_implicit or context.broker.config.boolean(VERIFICATION_ENABLED) else None


def _find_sequences(
    context: RequestContext,
    topics: Iterable[TopicData],
    sequences: dict[Partition, int],
    producers: set[tuple[int, int]],
) -> None:
    """Add the first sequence for each partition, and the producers as (id, epoch)."""
    for topic, partitions in topics:
        for index, records in partitions:
            if records is None or len(records) < BATCH_HEADER_BYTES or not is_transactional(records):
                continue
            try:
                partition = find_writable(context, topic, index)
            except KafkaError:
                continue  # the error is returned when the batch is appended
            header = read_header(records)
            if header.has_producer_id:
                producers.add((header.producer_id, header.producer_epoch))
                sequences[partition] = header.base_sequence


def _write_of(
    transactional_id: str, producers: set[tuple[int, int]], sequences: dict[Partition, int]
) -> TransactionalWrite | None:
    if len(producers) > 1:
        message = f"The request has transactional records of {len(producers)} producers: only one is allowed."
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, message)
    for producer_id, producer_epoch in producers:
        return TransactionalWrite(transactional_id, producer_id, producer_epoch, sequences)
    return None


def support_of(version: int) -> TransactionSupport:
    if version >= FIRST_VERSION_WITH_IMPLICIT_TRANSACTIONS:
        return TransactionSupport.IMPLICIT
    if version >= FIRST_VERSION_WITH_TRANSACTION_ABORTABLE:
        return TransactionSupport.ABORTABLE
    return TransactionSupport.PLAIN


def verification_of(verified: Verified, partition: Partition) -> VerificationGuard | None:
    """Return what the first batch of the transaction is appended with, if this is the first.

    :raises KafkaError: If the partition must not be appended to.
    """
    if partition in verified.errors:
        raise verified.errors[partition]
    return verified.verifications.get(partition)
