"""InitProducerId (22), v0-v6: an id for an idempotent producer (KIP-98).

v3: the producer's current id and epoch (KIP-360).  v4: PRODUCER_FENCED.  v6: two-phase commit (KIP-939).
Errors: INVALID_REQUEST for an id without an epoch or an empty transactional id; COORDINATOR_NOT_AVAILABLE for
transactional producers: this broker has no transaction coordinator; TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
CLUSTER_AUTHORIZATION_FAILED.
"""

from barnabas.api.authorization import allowed_any, require, require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NONE = -1


def refuse(request: InitProducerIdRequest, error: KafkaError) -> InitProducerIdResponse:
    """No id."""
    return InitProducerIdResponse(error_code=error.code, producer_id=NONE, producer_epoch=NONE)


@serves(InitProducerIdRequest, InitProducerIdResponse, 0, 6, refuse=refuse)
async def handle(context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """Give a fresh id at epoch 0 to a producer that is only idempotent."""
    _authorize(context, request)
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        message = (
            f"Producer id {request.producer_id} and epoch {request.producer_epoch} do not go together: "
            "both must be known, or both -1."
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id must not be empty.")
    if request.transactional_id is not None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "There is no transaction coordinator here.")
    return InitProducerIdResponse(producer_id=await context.node.producer_ids.next(), producer_epoch=0)


def _authorize(context: RequestContext, request: InitProducerIdRequest) -> None:
    """Whoever may write to some topic may do so idempotently (KIP-679)."""
    if request.transactional_id is not None:
        require(context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    elif not allowed_any(context, AclOperation.WRITE, ResourceType.TOPIC):
        require_cluster(context, AclOperation.IDEMPOTENT_WRITE)
