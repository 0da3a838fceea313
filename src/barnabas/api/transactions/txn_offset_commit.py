"""TxnOffsetCommit (28), v0-v5: commit offsets of a group as part of a transaction (KIP-98).

v2: leader epochs.  v3: generation and member, so that zombies are fenced (KIP-447).  v4: TRANSACTION_ABORTABLE.
v5: the group's partition is added to the transaction implicitly (KIP-890).
Errors, per partition: TRANSACTIONAL_ID_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED,
UNKNOWN_TOPIC_OR_PARTITION, INVALID_GROUP_ID, OFFSET_METADATA_TOO_LARGE, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID,
FENCED_INSTANCE_ID, INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING, INVALID_TXN_STATE, TRANSACTION_ABORTABLE,
NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
"""

from barnabas.api.authorization import require
from barnabas.api.context import RequestContext
from barnabas.api.groups.partition_checks import RejectedPartitions, merge, reject, split_known_partitions
from barnabas.api.groups.topic_slices import request_slices
from barnabas.api.registry import serves
from barnabas.base.topic_names import GROUP_TOPIC
from barnabas.coordinator.result import CoordinatorResult, Pending, TransactionalProducer
from barnabas.coordinator.shard_log import coordinator_error
from barnabas.groups.shard import GroupShard
from barnabas.log.producers.producer_state_manager import VerificationGuard
from barnabas.replication.transaction_verification import (
    TransactionalWrite,
    TransactionSupport,
    finish_verification,
    start_verification,
)
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.wire.records.batch import NO_SEQUENCE

FIRST_VERSION_WITH_TRANSACTION_ABORTABLE = 4
FIRST_VERSION_WITH_IMPLICIT_TRANSACTIONS = 5
#: Earlier clients do not know that a coordinator may be loading.
FIRST_VERSION_WITH_LOAD_IN_PROGRESS = 2
VERIFICATION_ENABLED = "transaction.partition.verification.enable"


def error_response(request: TxnOffsetCommitRequest, error: KafkaError) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[_error_topic(reject(topic, error.code)) for topic in request.topics]
    )


@serves(TxnOffsetCommitRequest, TxnOffsetCommitResponse, 0, 5, error_response=error_response)
async def handle(context: RequestContext, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    """Refuse unknown and unauthorized partitions; the group's coordinator decides on the others."""
    await require(context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    await require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    known, refused = await split_known_partitions(context, AclOperation.READ, request.topics)
    errors = await context.compute(lambda: [_error_topic(rejected) for rejected in refused])
    if not known:
        return TxnOffsetCommitResponse(topics=await context.compute(merge, errors, []))
    answered: list[TxnOffsetCommitResponseTopic] = []
    async for part in context.each(request_slices(request, known)):
        answered += (await _commit(context, part)).topics
    return TxnOffsetCommitResponse(topics=await context.compute(merge, errors, answered))


async def _commit(context: RequestContext, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    """Return the response of the coordinator, with the errors of refused partitions."""
    try:
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id is empty.")
        return await _commit_offsets(context, request)
    except KafkaError as error:
        return error_response(request, _error_for_version(error, context.api_version))


async def _commit_offsets(
    context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    version = context.api_version
    verification = await _verify(context, request)
    producer = TransactionalProducer(
        request.transactional_id, request.producer_id, request.producer_epoch, verification
    )

    def event(
        shard: GroupShard, result: CoordinatorResult, pending: Pending[TxnOffsetCommitResponse]
    ) -> None:
        result.producer = producer
        shard.offsets.commit_in_transaction(result, pending, request, version)

    return await context.broker.groups.handle_request(request.group_id, event)


async def _verify(context: RequestContext, request: TxnOffsetCommitRequest) -> VerificationGuard | None:
    """Verify that the group's partition is in the transaction, if this is the first write to it.

    :raises KafkaError: If it is not.
    """
    broker, support = context.broker, _support(context.api_version)
    if GROUP_TOPIC not in broker.image.topics:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"The topic {GROUP_TOPIC} does not exist yet.")
    runner = broker.groups.runner(request.group_id)
    runner.check_active()
    if support is not TransactionSupport.IMPLICIT and not broker.config.boolean(VERIFICATION_ENABLED):
        return None
    partition = runner.log.partition
    write = TransactionalWrite(
        request.transactional_id, request.producer_id, request.producer_epoch, {partition: NO_SEQUENCE}
    )
    started = start_verification(write, support)
    if broker.transaction_verifier is not None and started.verifications:
        await finish_verification(broker.transaction_verifier, write, support, started)
    for error in started.errors.values():
        raise coordinator_error(error)
    return started.verifications.get(partition)


def _support(version: int) -> TransactionSupport:
    if version >= FIRST_VERSION_WITH_IMPLICIT_TRANSACTIONS:
        return TransactionSupport.IMPLICIT
    if version >= FIRST_VERSION_WITH_TRANSACTION_ABORTABLE:
        return TransactionSupport.ABORTABLE
    return TransactionSupport.PLAIN


def _error_for_version(error: KafkaError, version: int) -> KafkaError:
    """Return the error as clients of a version know it."""
    is_loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if is_loading and version < FIRST_VERSION_WITH_LOAD_IN_PROGRESS:
        return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)
    return error


def _error_topic(rejected: RejectedPartitions) -> TxnOffsetCommitResponseTopic:
    partitions = [TxnOffsetCommitResponsePartition(index, rejected.code) for index in rejected.indexes]
    return TxnOffsetCommitResponseTopic(rejected.topic.name, partitions)
