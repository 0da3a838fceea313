"""FindCoordinator (10), v0-v6: the broker that coordinates a group or a transactional id.

v1: key type.  v4: many keys at once (KIP-699).  v6: share groups (KIP-932).
Errors, per key: GROUP_AUTHORIZATION_FAILED, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, COORDINATOR_NOT_AVAILABLE,
since no broker coordinates here; for all of them INVALID_REQUEST for an unknown key type,
CLUSTER_AUTHORIZATION_FAILED for share groups.
"""

from barnabas.api.authorization import require, require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

KEY_TYPES = {0: "consumer group", 1: "transactional id", 2: "share group"}
#: Key type -> what a principal must be able to describe; share coordinators are for brokers to find.
RESOURCE_TYPES = {0: ResourceType.GROUP, 1: ResourceType.TRANSACTIONAL_ID}
NO_BROKER = -1

FIRST_VERSION_WITH_MANY_KEYS = 4


def refuse(request: FindCoordinatorRequest, error: KafkaError) -> FindCoordinatorResponse:
    """No coordinator for any key; the top level is for clients before v4."""
    return FindCoordinatorResponse(
        error_code=error.code,
        error_message=error.message or None,
        node_id=NO_BROKER,
        port=NO_BROKER,
        coordinators=[_refused(key, error) for key in request.coordinator_keys],
    )


@serves(FindCoordinatorRequest, FindCoordinatorResponse, 0, 6, refuse=refuse)
async def handle(context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Say that there is none: clients understand that and ask again."""
    if request.key_type not in KEY_TYPES:
        message = (
            f"Key type {request.key_type} is unknown: 0 (group), 1 (transaction) and 2 (share) are known."
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if request.key_type not in RESOURCE_TYPES:
        require_cluster(context, AclOperation.CLUSTER_ACTION)
    if context.api_version < FIRST_VERSION_WITH_MANY_KEYS:
        return refuse(request, _find(context, request.key_type, request.key))
    answers = [_refused(key, _find(context, request.key_type, key)) for key in request.coordinator_keys]
    return FindCoordinatorResponse(coordinators=answers)


def _find(context: RequestContext, key_type: int, key: str) -> KafkaError:
    """Why there is no coordinator for a key."""
    try:
        if key_type in RESOURCE_TYPES:
            require(context, AclOperation.DESCRIBE, RESOURCE_TYPES[key_type], key)
    except KafkaError as error:
        return error
    message = f"There is no {KEY_TYPES[key_type]} coordinator here."
    return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)


def _refused(key: str, error: KafkaError) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=NO_BROKER,
        port=NO_BROKER,
        error_code=error.code,
        error_message=error.message or None,
    )
