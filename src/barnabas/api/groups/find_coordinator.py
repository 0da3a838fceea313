"""FindCoordinator (10), v0-v6: the broker that coordinates a group or a transactional id.

v1: key type.  v4: many keys at once (KIP-699).  v6: share groups (KIP-932).
Errors: COORDINATOR_NOT_AVAILABLE, since no broker coordinates here; INVALID_REQUEST for an unknown key type.
"""

from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

KEY_TYPES = {0: "consumer group", 1: "transactional id", 2: "share group"}
NO_BROKER = -1


def refuse(request: FindCoordinatorRequest, error: KafkaError) -> FindCoordinatorResponse:
    """No coordinator for any key; the top level is for clients before v4."""
    return FindCoordinatorResponse(
        error_code=error.code,
        error_message=error.message or None,
        node_id=NO_BROKER,
        port=NO_BROKER,
        coordinators=[
            Coordinator(
                key=key,
                node_id=NO_BROKER,
                port=NO_BROKER,
                error_code=error.code,
                error_message=error.message or None,
            )
            for key in request.coordinator_keys
        ],
    )


@serves(FindCoordinatorRequest, FindCoordinatorResponse, 0, 6, refuse=refuse)
async def handle(context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Say that there is none: clients understand that and ask again."""
    kind = KEY_TYPES.get(request.key_type)
    if kind is None:
        message = (
            f"Key type {request.key_type} is unknown: 0 (group), 1 (transaction) and 2 (share) are known."
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"There is no {kind} coordinator here.")
