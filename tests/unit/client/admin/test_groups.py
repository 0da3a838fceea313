"""Groups through the client: the right broker, and responses of every version."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.group_messages import GroupDescription, GroupListing, OffsetAndMetadata
from barnabas.client.admin.groups import Groups
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.retry import Retry
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import consumer_group_describe as consumer
from barnabas.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from barnabas.wire.schema import Versions
from support.loop import on_loop
from unit.client.fake_broker import NODE_ID, FakeBroker
from unit.client.fake_coordinator import GROUP, FakeCoordinator

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@asynccontextmanager
async def groups() -> AsyncIterator[tuple[Groups, FakeCoordinator]]:
    async with FakeBroker() as broker:
        coordinator = FakeCoordinator(broker)
        async with ClusterClient(broker.bootstrap, retry=Retry(first_ms=1, pause_ms_max=1)) as cluster:
            yield Groups(cluster), coordinator


@on_loop
async def test_groups_are_listed_by_filter() -> None:
    async with groups() as (admin, coordinator):
        assert await admin.list(["Stable"], ["classic"]) == [
            GroupListing(GROUP, "classic", "consumer", "Stable")
        ]
        [request] = coordinator.broker.received(ListGroupsRequest)
        assert (request.states_filter, request.types_filter) == (["Stable"], ["classic"])


@on_loop
async def test_a_loading_coordinator_is_retried() -> None:
    async with groups() as (admin, coordinator):
        loading = ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        coordinator.broker.answer(ListGroupsRequest, lambda _: loading)
        assert len(await admin.list()) == 1


@on_loop
async def test_a_classic_group_is_described_with_its_consumers_protocol_data() -> None:
    async with groups() as (admin, _):
        described = (await admin.describe([GROUP]))[GROUP]
        assert isinstance(described, GroupDescription)
        assert described[:-1] == (GROUP, "classic", "consumer", "Stable", "range", NODE_ID, None)
        assert [tuple(member) for member in described.members] == [
            ("m1", None, "reader", "/10.0.0.1", ["t"], [T0])
        ]


@on_loop
async def test_protocol_data_of_other_clients_is_opaque() -> None:
    async with groups() as (admin, coordinator):
        coordinator.metadata = b"\0"
        described = (await admin.describe([GROUP]))[GROUP]
        assert isinstance(described, GroupDescription)
        assert [tuple(each.assignment) for each in described.members] == [()]


@on_loop
async def test_a_missing_group_is_an_error_of_its_own() -> None:
    async with groups() as (admin, _):
        found = await admin.describe(["gone", GROUP])
        assert isinstance(found[GROUP], GroupDescription)
        error = found["gone"]
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.GROUP_ID_NOT_FOUND


@on_loop
async def test_a_consumer_group_is_described_by_its_own_api() -> None:
    async with groups() as (_, coordinator):
        given = consumer.Assignment([consumer.TopicPartitions(topic_name="t", partitions=[1, 0])])
        member = consumer.Member("m1", "i1", None, 4, "reader", "/10.0.0.1", ["u", "t"], assignment=given)
        group = consumer.DescribedGroup(
            group_id=GROUP, group_state="Stable", group_epoch=4, assignor_name="uniform", members=[member]
        )
        response = consumer.ConsumerGroupDescribeResponse(groups=[group])
        coordinator.broker.serve(consumer.ConsumerGroupDescribeRequest, lambda _: response)
        async with ClusterClient(
            coordinator.broker.bootstrap
        ) as cluster:  # reconnecting learns the served versions again
            described = (await Groups(cluster).describe([GROUP]))[GROUP]
        assert isinstance(described, GroupDescription)
        assert described[:-1] == (GROUP, "consumer", "consumer", "Stable", "uniform", NODE_ID, 4)
        assert [tuple(each) for each in described.members] == [
            ("m1", "i1", "reader", "/10.0.0.1", ["t", "u"], [T0, T1])
        ]


@on_loop
async def test_a_coordinator_that_has_moved_is_looked_up_again() -> None:
    async with groups() as (admin, coordinator):
        coordinator.state = "Empty"
        moved = DeleteGroupsResponse(results=[DeletableGroupResult(GROUP, ErrorCode.NOT_COORDINATOR)])
        coordinator.broker.answer(DeleteGroupsRequest, lambda _: moved)
        assert await admin.delete([GROUP]) == {GROUP: None}
        assert len(coordinator.broker.received(FindCoordinatorRequest)) == 2


@on_loop
async def test_a_group_with_members_is_not_deleted() -> None:
    async with groups() as (admin, _):
        error = (await admin.delete([GROUP]))[GROUP]
        assert error is not None
        assert error.code is ErrorCode.NON_EMPTY_GROUP


@pytest.mark.parametrize("newest", [2, 7, 8, 9, 10])
def test_offsets_are_fetched_from_brokers_of_every_version(newest: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with FakeBroker({OffsetFetchRequest: Versions(0, newest)}) as broker:
            coordinator = FakeCoordinator(broker)
            coordinator.offsets = {T0: 3}
            async with ClusterClient(broker.bootstrap) as cluster:
                found = await Groups(cluster).offsets(GROUP)
                epoch = 5 if newest >= 5 else -1
                assert found == {T0: OffsetAndMetadata(3, epoch, "m")}
                assert await Groups(cluster).offsets(GROUP, [T0, T1]) == found

    scenario()


@on_loop
async def test_a_group_error_is_raised() -> None:
    async with groups() as (admin, coordinator):
        refused = OffsetFetchResponseGroup(GROUP, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        coordinator.broker.answer(OffsetFetchRequest, lambda _: OffsetFetchResponse(groups=[refused]))
        with pytest.raises(KafkaError) as caught:
            await admin.offsets(GROUP)
        assert caught.value.code is ErrorCode.GROUP_AUTHORIZATION_FAILED


@on_loop
async def test_offsets_are_committed_without_membership() -> None:
    async with groups() as (admin, coordinator):
        assert await admin.commit_offsets(GROUP, {T0: 3, T1: 4}) == {T0: None, T1: None}
        assert coordinator.offsets == {T0: 3, T1: 4}
        [request] = coordinator.broker.received(OffsetCommitRequest)
        assert (request.generation_id_or_member_epoch, request.member_id) == (-1, "")
        coordinator.error = ErrorCode.UNKNOWN_MEMBER_ID
        refused = await admin.commit_offsets(GROUP, {T0: 5})
        assert refused[T0] is not None
        assert refused[T0].code is ErrorCode.UNKNOWN_MEMBER_ID


@on_loop
async def test_commits_are_retried_while_the_coordinator_loads() -> None:
    async with groups() as (admin, coordinator):

        def loading(request: OffsetCommitRequest) -> object:
            coordinator.error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            response = coordinator._commit(request)
            coordinator.error = ErrorCode.NONE
            return response

        coordinator.broker.answer(OffsetCommitRequest, loading)
        assert await admin.commit_offsets(GROUP, {T0: 3}) == {T0: None}


@on_loop
async def test_offsets_are_deleted() -> None:
    async with groups() as (admin, coordinator):
        coordinator.offsets = {T0: 3, T1: 4}
        assert await admin.delete_offsets(GROUP, [T0]) == {T0: None}
        assert coordinator.offsets == {T1: 4}
        gone = OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
        coordinator.broker.answer(OffsetDeleteRequest, lambda _: gone)
        with pytest.raises(KafkaError) as caught:
            await admin.delete_offsets(GROUP, [T1])
        assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND
