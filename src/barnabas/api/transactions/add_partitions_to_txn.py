"""AddPartitionsToTxn (24), v0-v5: add partitions to a transaction (KIP-98).

v2: PRODUCER_FENCED.  v4: many transactions, only from brokers, which may only verify (KIP-890).
v5: TRANSACTION_ABORTABLE.
Errors, per partition: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, and then OPERATION_NOT_ATTEMPTED for the
others; per transaction: TRANSACTIONAL_ID_AUTHORIZATION_FAILED, INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING,
PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, TRANSACTION_ABORTABLE, coordinator errors; at the top
CLUSTER_AUTHORIZATION_FAILED.
"""

from collections.abc import Iterable, Mapping

from barnabas.api.authorization import authorization_errors, require, require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.transactions.error_mapping import map_fenced_error
from barnabas.base.ids import TopicPartition
from barnabas.base.topic_names import INTERNAL_TOPICS
from barnabas.transactions.partitions import Addition
from barnabas.transactions.transaction import EPOCH_BUMPS_LEVEL
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

FIRST_VERSION_WITH_PRODUCER_FENCED = 2
FIRST_VERSION_OF_BROKERS = 4

Outcomes = Mapping[TopicPartition, ErrorCode]


def error_response(request: AddPartitionsToTxnRequest, error: KafkaError) -> AddPartitionsToTxnResponse:
    """Return the error at the top, and before v4 for every partition."""
    results = _same_result_for_all(request.v3_and_below_topics, error.code)
    return AddPartitionsToTxnResponse(error_code=error.code, results_by_topic_v3_and_below=results)


@serves(AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, 0, 5, error_response=error_response)
async def handle(context: RequestContext, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    if context.api_version < FIRST_VERSION_OF_BROKERS:
        results = await _transaction_results(context, _from_client(request))
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)
    await require_cluster(context, AclOperation.CLUSTER_ACTION)
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id,
                topic_results=await _transaction_results(context, transaction),
            )
            async for transaction in context.each(request.transactions)
        ]
    )


def _from_client(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


async def _transaction_results(
    context: RequestContext, transaction: AddPartitionsToTxnTransaction
) -> list[AddPartitionsToTxnTopicResult]:
    """Return the result of each partition: all of them are added, or none."""
    partitions = await context.compute(_partitions, transaction.topics)
    try:
        refused = await _refused_partitions(context, transaction.transactional_id, partitions)
        if refused:
            return await context.compute(_refused_results, partitions, refused)
        with map_fenced_error(context.api_version, FIRST_VERSION_WITH_PRODUCER_FENCED):
            outcomes = await _add_or_verify(context, transaction, partitions)
    except KafkaError as error:
        code = error.code
        if transaction.verify_only:
            return await context.compute(lambda: _results(dict.fromkeys(partitions, code)))
        return await context.compute(_same_result_for_all, transaction.topics, code)
    if outcomes is None:
        return await context.compute(_same_result_for_all, transaction.topics, ErrorCode.NONE)
    return await context.compute(_results, outcomes)


def _refused_results(
    partitions: list[TopicPartition], refused: Outcomes
) -> list[AddPartitionsToTxnTopicResult]:
    """Return the errors of refused partitions; no other partition is added either."""
    return _results(
        {partition: refused.get(partition, ErrorCode.OPERATION_NOT_ATTEMPTED) for partition in partitions}
    )


async def _refused_partitions(
    context: RequestContext, transactional_id: str, partitions: list[TopicPartition]
) -> Outcomes:
    """Return the unknown partitions, and those that the principal may not write to.

    :raises KafkaError: TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
    """
    image = context.broker.image
    refused = {}
    allowed = {partition.topic for partition in partitions}
    if context.api_version < FIRST_VERSION_OF_BROKERS:
        await require(context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        names = allowed - INTERNAL_TOPICS
        hidden = await authorization_errors(context, AclOperation.WRITE, ResourceType.TOPIC, names)
        allowed = names - hidden.keys()
    async for partition in context.each(partitions):
        topic = image.topics.get(partition.topic)
        if partition.topic not in allowed:
            refused[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic is None or not 0 <= partition.partition < topic.partition_count:
            refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refused


async def _add_or_verify(
    context: RequestContext, transaction: AddPartitionsToTxnTransaction, partitions: list[TopicPartition]
) -> Outcomes | None:
    """Add the partitions to the transaction, or verify that they are in it.

    :raises KafkaError: From the coordinator.
    """
    if not transaction.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id must not be empty.")
    is_broker = context.api_version >= FIRST_VERSION_OF_BROKERS
    addition = Addition(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        partitions,
        EPOCH_BUMPS_LEVEL if is_broker else 0,
    )
    coordinator = context.broker.transactions
    if transaction.verify_only:
        return await coordinator.query(
            addition.transactional_id, lambda shard, now_ms: shard.verify_partitions(addition)
        )
    await coordinator.handle_request(
        addition.transactional_id,
        lambda shard, result, pending: shard.add_partitions(result, pending, addition),
    )
    return None


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]


def _same_result_for_all(
    topics: Iterable[AddPartitionsToTxnTopic], code: ErrorCode
) -> list[AddPartitionsToTxnTopicResult]:
    """Return the same result for all requested partitions."""
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def _results(outcomes: Outcomes) -> list[AddPartitionsToTxnTopicResult]:
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for partition, code in outcomes.items():
        result = AddPartitionsToTxnPartitionResult(
            partition_index=partition.partition, partition_error_code=code
        )
        topics.setdefault(partition.topic, []).append(result)
    return [
        AddPartitionsToTxnTopicResult(name=name, results_by_partition=results)
        for name, results in topics.items()
    ]
