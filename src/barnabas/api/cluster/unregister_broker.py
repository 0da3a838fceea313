"""UnregisterBroker (64), v0: remove a broker that will not return.

Errors: BROKER_ID_NOT_REGISTERED, INVALID_REQUEST (a broker that is up), CLUSTER_AUTHORIZATION_FAILED.
"""

from barnabas.api.audit import cluster_result
from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.metadata.unregistration import decide_unregister
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def error_response(request: UnregisterBrokerRequest, error: KafkaError) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=error.code, error_message=error.message or None)


@serves(
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    0,
    0,
    error_response=error_response,
    audit=cluster_result,
    needs_latest_metadata=True,
)
async def handle(context: RequestContext, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    await require_cluster(context, AclOperation.ALTER)
    rules = context.broker.election_rules
    await context.write(lambda image: decide_unregister(image, request.broker_id, rules))
    return UnregisterBrokerResponse()
