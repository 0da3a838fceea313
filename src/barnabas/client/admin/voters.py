"""Voters of the metadata quorum: add, remove, update endpoints (KIP-853)."""

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
    """A voter, identified by its id and the id of its metadata directory."""

    node_id: int
    directory_id: bytes

    def __str__(self) -> str:
        return f"{self.node_id}-{uuid_to_text(self.directory_id)}"


class Voters:
    """Changes the voters of a cluster; not retried, because the quorum may have acted."""

    def __init__(self, cluster: ClusterClient) -> None:
        self.cluster = cluster

    async def add(self, voter: QuorumVoter, endpoints: Mapping[str, BrokerAddress]) -> None:
        """Add a running node as voter; `endpoints` by the names of its controller listeners.

        :raises KafkaError: DUPLICATE_VOTER, UNSUPPORTED_VERSION if voters are static, CLUSTER_AUTHORIZATION_FAILED.
        """
        listeners = [add_raft_voter.Listener(name, *address) for name, address in endpoints.items()]
        request = add_raft_voter.AddRaftVoterRequest(
            self.cluster.metadata.cluster_id, _TIMEOUT_MS, voter.node_id, voter.directory_id, listeners
        )
        response: add_raft_voter.AddRaftVoterResponse = await self._send(request)
        check(response.error_code, response.error_message)

    async def remove(self, voter: QuorumVoter) -> None:
        """Remove a voter.

        :raises KafkaError: VOTER_NOT_FOUND, UNSUPPORTED_VERSION if voters are static, CLUSTER_AUTHORIZATION_FAILED.
        """
        request = RemoveRaftVoterRequest(self.cluster.metadata.cluster_id, voter.node_id, voter.directory_id)
        response: RemoveRaftVoterResponse = await self._send(request)
        check(response.error_code, response.error_message)

    async def update(
        self, voter: QuorumVoter, endpoints: Mapping[str, BrokerAddress], quorum: QuorumDescription
    ) -> None:
        """Set the endpoints of a voter, in the epoch of `quorum`.

        Apache Kafka serves this only on controller listeners.

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
