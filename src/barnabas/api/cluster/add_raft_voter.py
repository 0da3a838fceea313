"""AddRaftVoter (80), v0-v1: add a voter to the quorum (KIP-853); always rejected: the controller is the only one.

v1: a response before the commit.
Errors: INCONSISTENT_CLUSTER_ID, INVALID_REQUEST (no voter, no listeners), DUPLICATE_VOTER, UNSUPPORTED_VERSION,
CLUSTER_AUTHORIZATION_FAILED.
"""

from barnabas.api.audit import cluster_result
from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.metadata.quorum import Voter, quorum_of, refuse_add
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


def error_response(request: AddRaftVoterRequest, error: KafkaError) -> AddRaftVoterResponse:
    return AddRaftVoterResponse(error_code=error.code, error_message=error.message or None)


@serves(AddRaftVoterRequest, AddRaftVoterResponse, 0, 1, error_response=error_response, audit=cluster_result)
async def handle(context: RequestContext, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    """Check the request, and refuse it in any case."""
    await require_cluster(context, AclOperation.ALTER)
    quorum = quorum_of(context.broker.image, context.broker.controller_id)
    voter = Voter(request.voter_id, request.voter_directory_id)
    raise refuse_add(quorum, request.cluster_id, voter, len(request.listeners))
