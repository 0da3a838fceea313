"""Elections, reassignments, and changes of features, brokers and voters need ALTER on the cluster."""

from pathlib import Path

import pytest

from barnabas.wire.acls import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest
from barnabas.wire.schema import Message
from support.loop import on_loop
from support.nodes import running_node


class AllowsBut:
    """An authorizer that allows every operation on the cluster but one."""

    version = 0
    asks = False

    def __init__(self, forbidden: AclOperation) -> None:
        self.forbidden = forbidden

    def known(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool:
        assert (resource_type, name) == (ResourceType.CLUSTER, CLUSTER_NAME)
        return operation is not self.forbidden


@pytest.mark.parametrize(
    ("request_", "needed"),
    [
        (ElectLeadersRequest(topic_partitions=[]), AclOperation.ALTER),
        (AlterPartitionReassignmentsRequest(topics=[]), AclOperation.ALTER),
        (ListPartitionReassignmentsRequest(), AclOperation.DESCRIBE),
        (DescribeQuorumRequest(), AclOperation.DESCRIBE),
        (UpdateFeaturesRequest(), AclOperation.ALTER),
        (UnregisterBrokerRequest(9), AclOperation.ALTER),
        (AddRaftVoterRequest(), AclOperation.ALTER),
        (RemoveRaftVoterRequest(), AclOperation.ALTER),
        (UpdateRaftVoterRequest(), AclOperation.CLUSTER_ACTION),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_request_needs_exactly_one_operation_on_the_cluster(
    tmp_path: Path, request_: Message, needed: AclOperation
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            for operation in (AclOperation.ALTER, AclOperation.DESCRIBE, AclOperation.CLUSTER_ACTION):
                node.broker.authorizer = AllowsBut(operation)  # type: ignore[assignment]
                code = (await node.ask(request_)).error_code
                assert (code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED) == (operation is needed)

    scenario()
