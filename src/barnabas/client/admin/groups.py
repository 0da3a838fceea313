"""Administration of groups and their committed offsets."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.extensions.rebalances import GroupRebalances, parse_describe_rebalances_response
from barnabas.client.admin.group_messages import (
    GroupDescription,
    GroupListing,
    LeavingMember,
    OffsetAndMetadata,
    classic_group_description,
    consumer_group_description,
    leave_group_request,
    offset_commit_request,
    offset_delete_request,
    offset_fetch_request,
    parse_leave_group_response,
    parse_list_groups_response,
    parse_offset_fetch_response,
    parse_partition_errors,
)
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.coordinators import KeyType, ask_coordinator
from barnabas.client.core.errors import check
from barnabas.wire.barnabas_messages.describe_rebalances import (
    DescribeRebalancesRequest,
    DescribeRebalancesResponse,
)
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

#: The last version of OffsetCommit and OffsetFetch with topic names.
_VERSION_BY_NAME_MAX = 9

#: Errors for a group of another protocol, or from a broker that has only the classic one.
_NOT_OF_CONSUMER_PROTOCOL = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})


class Groups:
    """Administers the groups of a cluster; stateless."""

    def __init__(self, cluster: ClusterClient) -> None:
        self.cluster = cluster

    async def list(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[GroupListing]:
        """List all groups by name, or those in one of `states` and of one of `types`; brokers before 3.8 have no types.

        :raises KafkaError: If a broker refuses the request, or is loading for as long as the cluster retries.
        """
        await self.cluster.refresh([])
        listings: list[GroupListing] = []
        for node in sorted(self.cluster.metadata.nodes):
            listings += await self._list_on(node, ListGroupsRequest(list(states), list(types)))
        return sorted(listings)

    async def _list_on(self, node: int, request: ListGroupsRequest) -> Iterable[GroupListing]:
        async def attempt() -> Iterable[GroupListing]:
            response: ListGroupsResponse = await self.cluster.send(request, node)
            check(response.error_code, f"broker {node} refused ListGroups")
            return parse_list_groups_response(response)

        return await self.cluster.retrying(attempt)

    async def describe(self, names: Iterable[str]) -> dict[str, GroupDescription | KafkaError]:
        """Describe each group with its members; GROUP_ID_NOT_FOUND for an unknown one."""
        return await _result_by_name(names, self._describe)

    async def _describe(self, name: str) -> GroupDescription:
        async def ask(node: int) -> GroupDescription:
            try:
                newer: ConsumerGroupDescribeResponse = await self.cluster.send(
                    ConsumerGroupDescribeRequest([name]), node
                )
                return consumer_group_description(newer.groups[0], node)
            except KafkaError as error:
                if error.code not in _NOT_OF_CONSUMER_PROTOCOL:
                    raise
            classic: DescribeGroupsResponse = await self.cluster.send(DescribeGroupsRequest([name]), node)
            return classic_group_description(classic.groups[0], node)

        return await self._ask(name, ask)

    async def authorized_operations(self, name: str) -> int:
        """Return the operations that the principal has on the group: a bit for each AclOperation, -2^31 if the broker
        does not return them.

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

    async def rebalances(self, name: str) -> GroupRebalances:
        """Return the last rebalances of a group; only Barnabas supports this.

        :raises KafkaError: GROUP_ID_NOT_FOUND, GROUP_AUTHORIZATION_FAILED; UNSUPPORTED_VERSION from other brokers.
        """

        async def ask(node: int) -> GroupRebalances:
            response: DescribeRebalancesResponse = await self.cluster.send(
                DescribeRebalancesRequest(name), node
            )
            return parse_describe_rebalances_response(name, response)

        return await self._ask(name, ask)

    async def delete(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        """Delete each group, which must have no members; None for success."""
        return await _result_by_name(names, self._delete)

    async def _delete(self, name: str) -> None:
        async def ask(node: int) -> None:
            response: DeleteGroupsResponse = await self.cluster.send(DeleteGroupsRequest([name]), node)
            check(response.results[0].error_code, f"group '{name}' is not deleted")

        await self._ask(name, ask)

    async def remove_members(
        self, name: str, members: Iterable[LeavingMember]
    ) -> dict[LeavingMember, KafkaError | None]:
        """Remove members of a classic group; None for success.

        :raises KafkaError: GROUP_AUTHORIZATION_FAILED, or another error of the group.
        """
        request = leave_group_request(name, members)

        async def ask(node: int) -> dict[LeavingMember, KafkaError | None]:
            return parse_leave_group_response(await self.cluster.send(request, node))

        return await self._ask(name, ask)

    async def offsets(
        self, name: str, partitions: Iterable[TopicPartition] | None = None, *, stable: bool = False
    ) -> dict[TopicPartition, OffsetAndMetadata | KafkaError]:
        """Return the committed offsets of all partitions or of `partitions`; those without one are left out.

        With `stable`, partitions with pending commits of transactions have UNSTABLE_OFFSET_COMMIT (KIP-447).

        :raises KafkaError: GROUP_AUTHORIZATION_FAILED, or another error of the group.
        """
        request = offset_fetch_request(name, partitions, stable=stable)

        async def ask(node: int) -> dict[TopicPartition, OffsetAndMetadata | KafkaError]:
            return parse_offset_fetch_response(
                await self.cluster.send(request, node, version_max=_VERSION_BY_NAME_MAX)
            )

        return await self._ask(name, ask)

    async def commit_offsets(
        self, name: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Commit offsets of a group without members; None for success.

        :raises KafkaError: COORDINATOR_NOT_AVAILABLE and similar errors, for as long as the cluster retries.
        """
        request = offset_commit_request(name, offsets)

        async def ask(node: int) -> dict[TopicPartition, KafkaError | None]:
            return parse_partition_errors(
                await self.cluster.send(request, node, version_max=_VERSION_BY_NAME_MAX)
            )

        return await self._ask(name, ask)

    async def delete_offsets(
        self, name: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Delete committed offsets of topics to which no member subscribes; None for success.

        :raises KafkaError: GROUP_ID_NOT_FOUND, or another error of the group.
        """
        request = offset_delete_request(name, partitions)

        async def ask(node: int) -> dict[TopicPartition, KafkaError | None]:
            response: OffsetDeleteResponse = await self.cluster.send(request, node)
            check(response.error_code, f"offsets of group '{name}' are not deleted")
            return parse_partition_errors(response)

        return await self._ask(name, ask)

    async def _ask(self, name: str, ask: Callable[[int], Awaitable[ResultT]]) -> ResultT:
        return await ask_coordinator(self.cluster, KeyType.GROUP, name, ask)


async def _result_by_name(names: Iterable[str], act: Callable[[str], Awaitable[Any]]) -> dict[str, Any]:
    """Return the result of `act` for each name, or its error."""
    results: dict[str, Any] = {}
    for name in names:
        try:
            results[name] = await act(name)
        except KafkaError as error:
            results[name] = error
    return results
