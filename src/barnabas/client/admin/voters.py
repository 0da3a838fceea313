"""Who votes on cluster state: voters added, removed, given other endpoints (KIP-853)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from barnabas.base.ids import uuid_to_text
from barnabas.client.admin.cluster_control import QuorumDescription
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import check
from barnabas.wire.messages import add_raft_voter, update_raft_voter
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from barnabas.wire.schema import Message

_TIMEOUT_MS = 30_000


class QuorumVoter(NamedTuple):
    """A node of the quorum, known by its id and the id of the directory with its metadata."""

    node_id: int
    directory_id: bytes

    def __str__(self) -> str:
        return f"{self.node_id}-{uuid_to_text(self.directory_id)}"


class Voters:
    """Changes the voters of the cluster that it is given; never tried again: the quorum may have acted."""

    def __init__(self, cluster: ClusterClient) -> None:
        self.cluster = cluster

    async def add(self, voter: QuorumVoter, endpoints: Mapping[str, BrokerAddress]) -> None:
        """Let a node that runs vote; `endpoints` by the names of its controller's listeners.

        :raises KafkaError: DUPLICATE_VOTER, UNSUPPORTED_VERSION where voters are fixed, CLUSTER_AUTHORIZATION_FAILED.
        """
        listeners = [add_raft_voter.Listener(name, *address) for name, address in endpoints.items()]
        request = add_raft_voter.AddRaftVoterRequest(
            self.cluster.metadata.cluster_id, _TIMEOUT_MS, voter.node_id, voter.directory_id, listeners
        )
        response: add_raft_voter.AddRaftVoterResponse = await self._send(request)
        check(response.error_code, response.error_message)

    async def remove(self, voter: QuorumVoter) -> None:
        """Let a node vote no longer.

        :raises KafkaError: VOTER_NOT_FOUND, UNSUPPORTED_VERSION where voters are fixed, CLUSTER_AUTHORIZATION_FAILED.
        """
        request = RemoveRaftVoterRequest(self.cluster.metadata.cluster_id, voter.node_id, voter.directory_id)
        response: RemoveRaftVoterResponse = await self._send(request)
        check(response.error_code, response.error_message)

    async def update(
        self, voter: QuorumVoter, endpoints: Mapping[str, BrokerAddress], quorum: QuorumDescription
    ) -> None:
        """Tell under which endpoints a voter is reached, in the epoch that `quorum` has.

        Apache Kafka takes it on the listeners of its controllers alone.

        :raises KafkaError: VOTER_NOT_FOUND, FENCED_LEADER_EPOCH, UNSUPPORTED_VERSION, CLUSTER_AUTHORIZATION_FAILED.
        """
        listeners = [update_raft_voter.Listener(name, *address) for name, address in endpoints.items()]
        request = update_raft_voter.UpdateRaftVoterRequest(
            self.cluster.metadata.cluster_id,
            quorum.leader_epoch,
            voter.node_id,
            voter.directory_id,
            listeners,
        )
        response: update_raft_voter.UpdateRaftVoterResponse = await self._send(request)
        check(response.error_code, f"voter {voter} is not updated")

    async def _send(self, request: Message) -> Any:
        return await self.cluster.send(request, timeout_ms=_TIMEOUT_MS + self.cluster.request_timeout_ms)
