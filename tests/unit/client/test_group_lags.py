"""Lags: every partition that a group reads, and lower bounds where a lag is unknown."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.group_messages import GroupDescription, MemberDescription, OffsetAndMetadata
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.group_lags import (
    LagTotal,
    PartitionLag,
    lag_by_topic,
    lags_of,
    lags_of_partitions,
    topics_read,
    total_lag,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.record import Record, encode_batch
from support.loop import on_loop
from unit.client.fake_broker import FakeBroker
from unit.client.fake_coordinator import GROUP, FakeCoordinator

T0, T1, T2 = (TopicPartition("t", index) for index in range(3))
U0 = TopicPartition("u", 0)


def at(offset: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, -1, "")


@asynccontextmanager
async def cluster() -> AsyncIterator[tuple[ClusterClient, FakeCoordinator]]:
    """Write ten records to partitions 0 and 1 of "t", none to partition 2; a member subscribes to "t"."""
    async with FakeBroker() as broker:
        broker.create("t", 3)
        for partition in (0, 1):
            broker.append("t", partition, encode_batch([Record(0, 0, None, b"v") for _ in range(10)]))
        coordinator = FakeCoordinator(broker)
        async with ClusterClient(broker.bootstrap) as connected:
            yield connected, coordinator


def group(*members: MemberDescription, protocol_type: str = "consumer") -> GroupDescription:
    return GroupDescription("g", "classic", protocol_type, "Stable", "range", 1, None, members)


def member(*topics: str, assigned: tuple[TopicPartition, ...] = ()) -> MemberDescription:
    return MemberDescription("m", None, "c", "/h", topics, assigned)


@on_loop
async def test_every_subscribed_partition_is_included_with_or_without_commit() -> None:
    async with cluster() as (connected, coordinator):
        coordinator.offsets = {T0: 4}
        lags = (await lags_of(connected, [GROUP]))[GROUP]
        assert not isinstance(lags, KafkaError)
        assert [(each.tp, each.end, each.lag) for each in lags] == [(T0, 10, 6), (T1, 10, None), (T2, 0, 0)]
        assert total_lag(lags) == LagTotal(6, 1)


@on_loop
async def test_a_missing_group_does_not_hide_others() -> None:
    async with cluster() as (connected, coordinator):
        coordinator.offsets = {T0: 4}
        lags = await lags_of(connected, [GROUP, "gone"])
        assert isinstance(lags["gone"], KafkaError)
        assert not isinstance(lags[GROUP], KafkaError)


@on_loop
async def test_only_named_partitions_are_included() -> None:
    async with cluster() as (connected, coordinator):
        coordinator.offsets = {T0: 4}
        assert [each.tp for each in await lags_of_partitions(connected, GROUP, [T1])] == [T1]
        with pytest.raises(KafkaError) as caught:
            await lags_of_partitions(connected, "gone", [T1])
        assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("committed", "end", "start", "lag"),
    [
        (4, 10, None, 6),
        (10, 10, None, 0),
        (None, 10, 0, None),
        (None, 10, 10, 0),
        (4, None, None, None),
        (11, 10, 0, None),  # out of range: the reset policy applies
    ],
)
def test_a_lag_is_exact_or_unknown(
    committed: int | None, end: int | None, start: int | None, lag: int | None
) -> None:
    assert PartitionLag(T0, None if committed is None else at(committed), end, start).lag == lag


def test_totals_are_lower_bounds_where_a_lag_is_unknown() -> None:
    lags = [PartitionLag(T0, at(4), 10), PartitionLag(T1, None, 10, 0), PartitionLag(U0, at(1), 3)]
    assert lag_by_topic(lags) == {"t": LagTotal(6, 1), "u": LagTotal(2, 0)}
    assert [str(each) for each in (total_lag(lags), total_lag(lags[2:]), total_lag(lags[1:2]))] == [
        "at least 8",
        "2",
        "unknown",
    ]


def test_all_partitions_of_members_topics_are_read() -> None:
    assert topics_read(group(member("t"), member("u")), {}) == {"t", "u"}
    assert topics_read(group(member(assigned=(T0,))), {}) == {"t"}  # matched by a regular expression
    assert topics_read(group(member("t")), {U0: at(1)}) == {"t"}  # "u" is no longer read


def test_without_members_all_partitions_of_committed_topics_are_read() -> None:
    assert topics_read(group(), {T0: at(1)}) == {"t"}
    assert topics_read(group(protocol_type=""), {T0: at(1)}) == set()
