"""RemoveRaftVoter (81), v0: remove a voter (KIP-853); the only voter, the controller, cannot be removed.

Errors: INCONSISTENT_CLUSTER_ID, INVALID_REQUEST (no voter), VOTER_NOT_FOUND, CLUSTER_AUTHORIZATION_FAILED.
"""

from barnabas.api.audit import cluster_result
from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.metadata.quorum import Voter, quorum_of, refuse_remove
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


def error_response(request: RemoveRaftVoterRequest, error: KafkaError) -> RemoveRaftVoterResponse:
    return RemoveRaftVoterResponse(error_code=error.code, error_message=error.message or None)


@serves(
    RemoveRaftVoterRequest, RemoveRaftVoterResponse, 0, 0, error_response=error_response, audit=cluster_result
)
async def handle(context: RequestContext, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    """Check the request, and refuse it in any case."""
    await require_cluster(context, AclOperation.ALTER)
    quorum = quorum_of(context.broker.image, context.broker.controller_id)
    raise refuse_remove(quorum, request.cluster_id, Voter(request.voter_id, request.voter_directory_id))
