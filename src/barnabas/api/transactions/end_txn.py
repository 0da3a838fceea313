"""EndTxn (26), v0-v5: commit or abort a transaction (KIP-98).

v2: PRODUCER_FENCED.  v4: TRANSACTION_ABORTABLE.  v5: each transaction increments the producer epoch (KIP-890).
Errors: TRANSACTIONAL_ID_AUTHORIZATION_FAILED, INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED,
CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE, coordinator errors.
"""

from barnabas.api.authorization import require
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.transactions.error_mapping import map_fenced_error
from barnabas.transactions.end_txn import EndTxn
from barnabas.transactions.transaction import EPOCH_BUMPS_LEVEL, TransactionMetadata
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

FIRST_VERSION_WITH_PRODUCER_FENCED = 2
FIRST_VERSION_WITH_EPOCH_BUMPS = 5


def error_response(request: EndTxnRequest, error: KafkaError) -> EndTxnResponse:
    return EndTxnResponse(error_code=error.code)


@serves(EndTxnRequest, EndTxnResponse, 0, 5, error_response=error_response)
async def handle(context: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
    """Decide the outcome; markers are written after the response."""
    await require(context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id must not be empty.")
    bumps = context.api_version >= FIRST_VERSION_WITH_EPOCH_BUMPS
    end_txn = EndTxn(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.committed,
        EPOCH_BUMPS_LEVEL if bumps else 0,
    )
    if bumps:
        await context.broker.producer_ids.ready()
    with map_fenced_error(context.api_version, FIRST_VERSION_WITH_PRODUCER_FENCED):
        ended: TransactionMetadata = await context.broker.transactions.handle_request(
            end_txn.transactional_id, lambda shard, result, pending: shard.end(result, pending, end_txn)
        )
    return EndTxnResponse(producer_id=ended.producer_id, producer_epoch=ended.producer_epoch)
