"""UpdateRaftVoter (82), v0: set the endpoints of a voter (KIP-853); those of the controller are its broker's.

Apache Kafka serves this only on controller listeners, which Barnabas does not have.
Errors: INCONSISTENT_CLUSTER_ID, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, INVALID_REQUEST (no voter, no listeners),
VOTER_NOT_FOUND, UNSUPPORTED_VERSION, CLUSTER_AUTHORIZATION_FAILED.
"""

from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.metadata.quorum import LEADER_EPOCH, Voter, quorum_of, refuse_update
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.update_raft_voter import (
    CurrentLeader,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)


def error_response(request: UpdateRaftVoterRequest, error: KafkaError) -> UpdateRaftVoterResponse:
    return UpdateRaftVoterResponse(error_code=error.code)


@serves(UpdateRaftVoterRequest, UpdateRaftVoterResponse, 0, 0, error_response=error_response)
async def handle(context: RequestContext, request: UpdateRaftVoterRequest) -> UpdateRaftVoterResponse:
    """Check the request, refuse it in any case, and return the leader."""
    await require_cluster(context, AclOperation.CLUSTER_ACTION)
    broker = context.broker
    quorum = quorum_of(broker.image, broker.controller_id)
    voter = Voter(request.voter_id, request.voter_directory_id)
    error = refuse_update(
        quorum, request.cluster_id, request.current_leader_epoch, voter, len(request.listeners)
    )
    leader = CurrentLeader(quorum.voter.voter_id, LEADER_EPOCH)
    if quorum.endpoints:
        leader.host, leader.port = quorum.endpoints[0].host, quorum.endpoints[0].port
    return UpdateRaftVoterResponse(error_code=error.code, current_leader=leader)
