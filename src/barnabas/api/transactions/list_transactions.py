"""ListTransactions (66), v0-v2: the transactional ids that this broker coordinates (KIP-664).

v1: filter by duration (KIP-994).  v2: filter by a pattern of transactional ids (KIP-1152).
Errors: COORDINATOR_LOAD_IN_PROGRESS, INVALID_REGULAR_EXPRESSION. Ids that the principal may not describe are left out.
"""

from barnabas.api.authorization import allowed, ask_authorizer
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.transactions.listing import Filter, compiled, unknown_states
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)


def error_response(request: ListTransactionsRequest, error: KafkaError) -> ListTransactionsResponse:
    """Return the error, without transactional ids."""
    return ListTransactionsResponse(error_code=error.code)


@serves(ListTransactionsRequest, ListTransactionsResponse, 0, 2, error_response=error_response)
async def handle(context: RequestContext, request: ListTransactionsRequest) -> ListTransactionsResponse:
    """List the transactional ids of all shards that match every filter."""
    transaction_filter = Filter(
        frozenset(request.state_filters),
        frozenset(request.producer_id_filters),
        request.duration_filter,
        compiled(request.transactional_id_pattern),
    )
    by_shard = await context.broker.transactions.query_all(
        lambda shard, now_ms: shard.matching(transaction_filter, now_ms), context.checkpoint
    )
    ids = (transaction.transactional_id for transactions in by_shard for transaction in transactions)
    await ask_authorizer(context, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, ids)
    return ListTransactionsResponse(
        unknown_state_filters=unknown_states(request.state_filters),
        transaction_states=[
            TransactionState(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state,
            )
            for transactions in by_shard
            async for transaction in context.each(transactions)
            if await allowed(
                context, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transaction.transactional_id
            )
        ],
    )
