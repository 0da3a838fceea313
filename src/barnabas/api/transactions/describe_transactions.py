"""DescribeTransactions (65), v0: transactional ids, their producers and transactions (KIP-664).

Errors, per id: TRANSACTIONAL_ID_AUTHORIZATION_FAILED, TRANSACTIONAL_ID_NOT_FOUND, INVALID_REQUEST for an empty id,
coordinator errors. Topics that the principal may not describe are left out.
"""

from barnabas.api.authorization import filter_allowed, require
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.transactions.transaction import TransactionMetadata, by_topic
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


def error_response(request: DescribeTransactionsRequest, error: KafkaError) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(transactional_id=transactional_id, error_code=error.code)
            for transactional_id in request.transactional_ids
        ]
    )


@serves(DescribeTransactionsRequest, DescribeTransactionsResponse, 0, 0, error_response=error_response)
async def handle(
    context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    names = await context.compute(dict.fromkeys, request.transactional_ids)
    return DescribeTransactionsResponse(
        transaction_states=[await _describe(context, name) async for name in context.each(names)]
    )


async def _describe(context: RequestContext, transactional_id: str) -> TransactionState:
    try:
        await require(context, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id must not be empty.")
        transaction = await context.broker.transactions.query(
            transactional_id, lambda shard, now_ms: shard.find(transactional_id)
        )
    except KafkaError as error:
        return TransactionState(transactional_id=transactional_id, error_code=error.code)
    return await _state(context, transaction)


async def _state(context: RequestContext, transaction: TransactionMetadata) -> TransactionState:
    topics = by_topic(transaction.partitions)
    visible = await filter_allowed(context, AclOperation.DESCRIBE, ResourceType.TOPIC, topics)
    return TransactionState(
        transactional_id=transaction.transactional_id,
        transaction_state=transaction.state,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=indexes)
            for topic, indexes in topics.items()
            if topic in visible
        ],
    )
