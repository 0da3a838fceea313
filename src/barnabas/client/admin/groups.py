"""Groups as an administrator sees them: who is in them, and the offsets that they have committed."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.group_messages import (
    GroupDescription,
    GroupListing,
    LeavingMember,
    OffsetAndMetadata,
    committing,
    deleting,
    described_classic,
    described_consumer,
    fetched,
    fetching,
    leaving,
    left,
    listed,
    outcomes,
)
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.coordinators import KeyType, ask_coordinator
from barnabas.client.core.errors import check
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.wire.messages.offset_delete import OffsetDeleteResponse

ResultT = TypeVar("ResultT")

#: The last version of OffsetCommit and OffsetFetch that names topics.
_VERSION_BY_NAME_MAX = 9

#: A group of another protocol, or a broker that knows the classic one alone.
_NOT_OF_CONSUMER_PROTOCOL = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})


class Groups:
    """Administers the groups of the cluster that it is given; has no state of its own."""

    def __init__(self, cluster: ClusterClient) -> None:
        self.cluster = cluster

    async def list(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[GroupListing]:
        """All groups by name, or those in one of `states` and of one of `types`; brokers before 3.8 know no types.

        :raises KafkaError: When a broker refuses, or is still loading for as long as the cluster retries.
        """
        await self.cluster.refresh([])
        found: list[GroupListing] = []
        for node in sorted(self.cluster.metadata.nodes):
            found += await self._list_on(node, ListGroupsRequest(list(states), list(types)))
        return sorted(found)

    async def _list_on(self, node: int, request: ListGroupsRequest) -> Iterable[GroupListing]:
        async def attempt() -> Iterable[GroupListing]:
            response: ListGroupsResponse = await self.cluster.send(request, node)
            check(response.error_code, f"broker {node} refused ListGroups")
            return listed(response)

        return await self.cluster.retrying(attempt)

    async def describe(self, names: Iterable[str]) -> dict[str, GroupDescription | KafkaError]:
        """Each group with its members; GROUP_ID_NOT_FOUND for one that is not there."""
        return await _each(names, self._describe)

    async def _describe(self, name: str) -> GroupDescription:
        async def ask(node: int) -> GroupDescription:
            try:
                newer: ConsumerGroupDescribeResponse = await self.cluster.send(
                    ConsumerGroupDescribeRequest([name]), node
                )
                return described_consumer(newer.groups[0], node)
            except KafkaError as error:
                if error.code not in _NOT_OF_CONSUMER_PROTOCOL:
                    raise
            classic: DescribeGroupsResponse = await self.cluster.send(DescribeGroupsRequest([name]), node)
            return described_classic(classic.groups[0], node)

        return await self._ask(name, ask)

    async def authorized_operations(self, name: str) -> int:
        """What whoever asks may do to the group: a bit for each AclOperation, -2^31 where the broker cannot tell.

        :raises KafkaError: GROUP_ID_NOT_FOUND, GROUP_AUTHORIZATION_FAILED.
        """

        async def ask(node: int) -> int:
            try:
                newer: ConsumerGroupDescribeResponse = await self.cluster.send(
                    ConsumerGroupDescribeRequest([name], include_authorized_operations=True), node
                )
                check(newer.groups[0].error_code, newer.groups[0].error_message)
                return newer.groups[0].authorized_operations
            except KafkaError as error:
                if error.code not in _NOT_OF_CONSUMER_PROTOCOL:
                    raise
            classic: DescribeGroupsResponse = await self.cluster.send(
                DescribeGroupsRequest([name], include_authorized_operations=True), node
            )
            check(classic.groups[0].error_code, classic.groups[0].error_message)
            return classic.groups[0].authorized_operations

        return await self._ask(name, ask)

    async def delete(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        """Delete each group, which must have no members; None stands for success."""
        return await _each(names, self._delete)

    async def _delete(self, name: str) -> None:
        async def ask(node: int) -> None:
            response: DeleteGroupsResponse = await self.cluster.send(DeleteGroupsRequest([name]), node)
            check(response.results[0].error_code, f"group '{name}' is not deleted")

        await self._ask(name, ask)

    async def remove_members(
        self, name: str, members: Iterable[LeavingMember]
    ) -> dict[LeavingMember, KafkaError | None]:
        """Make members of a classic group leave it; None stands for success.

        :raises KafkaError: GROUP_AUTHORIZATION_FAILED, and whatever else is wrong with the group.
        """
        request = leaving(name, members)

        async def ask(node: int) -> dict[LeavingMember, KafkaError | None]:
            return left(await self.cluster.send(request, node))

        return await self._ask(name, ask)

    async def offsets(
        self, name: str, partitions: Iterable[TopicPartition] | None = None, *, stable: bool = False
    ) -> dict[TopicPartition, OffsetAndMetadata | KafkaError]:
        """What the group has committed, of all partitions or of `partitions`; those without a commit are left out.

        With `stable` a partition has UNSTABLE_OFFSET_COMMIT while a transaction is open that commits for it (KIP-447).

        :raises KafkaError: GROUP_AUTHORIZATION_FAILED, and whatever else is wrong with the group.
        """
        request = fetching(name, partitions, stable=stable)

        async def ask(node: int) -> dict[TopicPartition, OffsetAndMetadata | KafkaError]:
            return fetched(await self.cluster.send(request, node, version_max=_VERSION_BY_NAME_MAX))

        return await self._ask(name, ask)

    async def commit_offsets(
        self, name: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Commit for a group without members; None stands for success.

        :raises KafkaError: COORDINATOR_NOT_AVAILABLE and the like, when that has lasted for long.
        """
        request = committing(name, offsets)

        async def ask(node: int) -> dict[TopicPartition, KafkaError | None]:
            return outcomes(await self.cluster.send(request, node, version_max=_VERSION_BY_NAME_MAX))

        return await self._ask(name, ask)

    async def delete_offsets(
        self, name: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Forget what was committed for partitions of topics that no member subscribes to; None stands for success.

        :raises KafkaError: GROUP_ID_NOT_FOUND, and whatever else is wrong with the group.
        """
        request = deleting(name, partitions)

        async def ask(node: int) -> dict[TopicPartition, KafkaError | None]:
            response: OffsetDeleteResponse = await self.cluster.send(request, node)
            check(response.error_code, f"offsets of group '{name}' are not deleted")
            return outcomes(response)

        return await self._ask(name, ask)

    async def _ask(self, name: str, ask: Callable[[int], Awaitable[ResultT]]) -> ResultT:
        return await ask_coordinator(self.cluster, KeyType.GROUP, name, ask)


async def _each(names: Iterable[str], act: Callable[[str], Awaitable[Any]]) -> dict[str, Any]:
    """What `act` gives, or raises, for each name."""
    found: dict[str, Any] = {}
    for name in names:
        try:
            found[name] = await act(name)
        except KafkaError as error:
            found[name] = error
    return found
