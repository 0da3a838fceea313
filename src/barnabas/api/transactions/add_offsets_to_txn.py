"""AddOffsetsToTxn (25), v0-v4: add a group's offsets to a transaction (KIP-98).

v2: PRODUCER_FENCED.
Errors: TRANSACTIONAL_ID_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED, INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING,
PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, coordinator errors.
"""

from barnabas.api.authorization import require
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.transactions.error_mapping import map_fenced_error
from barnabas.base.ids import TopicPartition
from barnabas.base.topic_names import GROUP_TOPIC
from barnabas.coordinator.partition_of import partition_of
from barnabas.transactions.partitions import Addition
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

FIRST_VERSION_WITH_PRODUCER_FENCED = 2


def error_response(request: AddOffsetsToTxnRequest, error: KafkaError) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=error.code)


@serves(AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, 0, 4, error_response=error_response)
async def handle(context: RequestContext, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    """Add the partition of the group's offsets to the transaction."""
    await require(context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    await require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id must not be empty.")
    addition = Addition(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [_offsets_partition(context, request.group_id)],
    )
    with map_fenced_error(context.api_version, FIRST_VERSION_WITH_PRODUCER_FENCED):
        await context.broker.transactions.handle_request(
            addition.transactional_id,
            lambda shard, result, pending: shard.add_partitions(result, pending, addition),
        )
    return AddOffsetsToTxnResponse()


def _offsets_partition(context: RequestContext, group_id: str) -> TopicPartition:
    broker = context.broker
    topic = broker.image.topics.get(GROUP_TOPIC)
    count = topic.partition_count if topic else broker.config.integer("offsets.topic.num.partitions")
    return TopicPartition(GROUP_TOPIC, partition_of(group_id, count))
