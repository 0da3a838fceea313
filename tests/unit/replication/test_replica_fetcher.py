"""A follower copies from its leader: positions, truncation, errors."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from barnabas.base.clock import ManualClock, SystemClock
from barnabas.base.ids import TopicIdPartition
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.errors import ConnectionLost
from barnabas.metadata.topics import PartitionRegistration
from barnabas.replication.flusher import Flusher
from barnabas.replication.partition import Partition
from barnabas.replication.replica_fetcher import FetchSettings, ReplicaFetcher
from barnabas.replication.throttle import ReplicationThrottle
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset as EndOfEpoch,
)
from barnabas.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from support.batches import batch
from support.loop import on_loop
from support.throttles import throttle
from support.waiting import reached

Make = Callable[..., Partition]
SESSION = 77


def leader_batch(offset: int, epoch: int, value: bytes = b"x") -> bytes:
    """Return a batch as the leader has it in its log."""
    data = batch(value)
    data[0:8] = offset.to_bytes(8)
    data[12:16] = epoch.to_bytes(4)
    return bytes(data)


def response(**fields: Any) -> FetchResponse:
    data = PartitionData(partition_index=0, high_watermark=fields.pop("high_watermark", 0), **fields)
    return FetchResponse(
        session_id=SESSION, responses=[FetchableTopicResponse(topic_id=b"t" * 16, partitions=[data])]
    )


class Leader:
    """Answers fetches with given responses, then with nothing new; and the other requests with offsets."""

    def __init__(
        self, *answers: FetchResponse | Exception, start_offset: int = 0, end_offset: int = 0
    ) -> None:
        self.answers = list(answers)
        self.fetches: list[FetchRequest] = []
        self.start_offset, self.end_offset = start_offset, end_offset
        self.before_offsets: Callable[[], None] = lambda: None
        self.before_fetch: Callable[[], object] = lambda: None
        self.has_answered = asyncio.Event()

    async def send(self, _leader: int, request: Any) -> Any:
        if isinstance(request, ListOffsetsRequest):
            self.before_offsets()
            found = ListOffsetsPartitionResponse(offset=self.start_offset)
            return ListOffsetsResponse(topics=[ListOffsetsTopicResponse("t", [found])])
        if isinstance(request, OffsetForLeaderEpochRequest):
            end = EndOfEpoch(end_offset=self.end_offset)
            return OffsetForLeaderEpochResponse(topics=[OffsetForLeaderTopicResult("t", [end])])
        self.before_fetch()
        self.fetches.append(request)
        if not self.answers:
            self.has_answered.set()
            await asyncio.sleep(0.01)
            return FetchResponse(session_id=SESSION)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def follower(make: Make, *epochs: int, index: int = 0) -> Partition:
    """Return a partition that broker 2 leads in epoch 5, with one record of each of these leader epochs."""
    partition = make((1, 2), PartitionRegistration(2, 5, (1, 2), replicas=(1, 2)), index=index)
    for offset, epoch in enumerate(epochs):
        partition.log.append_copied(memoryview(leader_batch(offset, epoch)))
    return partition


@asynccontextmanager
async def fetching(
    leader: Leader, *partitions: Partition, backoff_ms: int = 5, limit: ReplicationThrottle | None = None
) -> AsyncIterator[ReplicaFetcher]:
    """Run a fetcher until the leader's answers are used up."""
    settings = FetchSettings(500, 1 << 20, 10 << 20, backoff_ms)
    flusher = Flusher()
    fetcher = ReplicaFetcher(
        1,
        2,
        leader,  # type: ignore[arg-type]
        SystemClock(),
        lambda: settings,
        limit or throttle(),
        flusher,
        lambda: 9,
        lambda *_: None,
    )
    fetcher.start()
    for partition in partitions:
        fetcher.add(partition)
    try:
        await asyncio.wait_for(leader.has_answered.wait(), 20)
        yield fetcher
    finally:
        await fetcher.stop()
        await flusher.close()


def positions(leader: Leader) -> list[list[tuple[int, int]]]:
    """Return (fetch offset, last fetched epoch) of the partitions that each fetch names."""
    return [
        [(each.fetch_offset, each.last_fetched_epoch) for topic in fetch.topics for each in topic.partitions]
        for fetch in leader.fetches
    ]


@on_loop
async def test_records_are_appended_and_only_changed_positions_are_named(make_partition: Make) -> None:
    partition = follower(make_partition)
    leader = Leader(response(records=leader_batch(0, 5) + leader_batch(1, 5), high_watermark=1))
    async with fetching(leader, partition):
        assert partition.log.log_end_offset == 2
        assert partition.log.high_watermark == 1
    assert positions(leader)[:2] == [[(0, -1)], [(2, 5)]]
    assert all(named == [] for named in positions(leader)[2:])
    first, second = leader.fetches[:2]
    assert (first.session_id, first.session_epoch) == (0, 0)
    assert (second.session_id, second.session_epoch) == (SESSION, 1)
    assert (first.replica_state.replica_id, first.replica_state.replica_epoch) == (1, 9)


@on_loop
async def test_a_partition_that_cannot_be_copied_does_not_hold_the_others_up(
    make_partition: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged, other = follower(make_partition), follower(make_partition, index=1)

    def fail(_: object) -> None:
        raise ValueError("an error of our own")

    monkeypatch.setattr(damaged.log, "append_copied", fail)
    both = response(records=leader_batch(0, 5))
    both.responses[0].partitions.append(PartitionData(partition_index=1, records=leader_batch(0, 5)))
    async with fetching(Leader(both), damaged, other) as fetcher:
        assert (damaged.log.log_end_offset, other.log.log_end_offset) == (0, 1)
        await reached(lambda: fetcher.fetches_count > 3)


@on_loop
async def test_with_flush_messages_the_leader_learns_of_records_after_their_flush(
    make_partition: Make,
) -> None:
    partition = follower(make_partition)
    partition.log.config = replace(partition.log.config, flush_messages=2)
    leader = Leader(response(records=leader_batch(0, 5)), response(records=leader_batch(1, 5)))
    flushed: list[int] = []
    leader.before_fetch = lambda: flushed.append(partition.log.recovery_point)
    async with fetching(leader, partition):
        assert positions(leader)[:3] == [[(0, -1)], [(1, 5)], [(2, 5)]]
        assert flushed[:3] == [0, 0, 2]


@on_loop
async def test_the_leader_never_learns_of_records_that_could_not_be_flushed(
    make_partition: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError(5, "Input/output error")

    partition = follower(make_partition)
    partition.log.config = replace(partition.log.config, flush_messages=1)
    monkeypatch.setattr(partition.log, "sync", fail)
    leader = Leader(response(records=leader_batch(0, 5)))
    async with fetching(leader, partition):
        assert partition.log.failure is not None
        await reached(lambda: len(leader.fetches) >= 2)
    assert positions(leader)[0] == [(0, -1)]
    assert not any(positions(leader)[1:])
    assert leader.fetches[1].forgotten_topics_data


@on_loop
async def test_records_from_before_the_first_fetch_are_flushed_before_it(make_partition: Make) -> None:
    partition = follower(make_partition, 5, 5)
    partition.log.config = replace(partition.log.config, flush_messages=1)
    leader = Leader(response())
    leader.before_fetch = lambda: named.append((positions(leader), partition.log.recovery_point))
    named: list[Any] = []
    async with fetching(leader, partition):
        await reached(lambda: [(2, 5)] in positions(leader))
    assert all(recovery_point == 2 for before, recovery_point in named if [(2, 5)] in before)


@on_loop
async def test_a_slow_flush_does_not_delay_the_other_partitions(
    make_partition: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_flush = threading.Event()
    slow, other = follower(make_partition), follower(make_partition, index=1)
    slow.log.config = replace(slow.log.config, flush_messages=1)
    sync = slow.log.sync

    def slow_sync() -> Any:
        may_flush.wait()
        return sync()

    monkeypatch.setattr(slow.log, "sync", slow_sync)
    leader = Leader(response(records=leader_batch(0, 5)))
    try:
        async with fetching(leader, slow, other) as fetcher:
            await reached(lambda: leader.fetches[-1].session_epoch >= 3)
            assert not any((1, 5) in named for named in positions(leader))
            assert fetcher.statistics()["flushes_count"] == 1
            may_flush.set()
            await reached(lambda: any((1, 5) in named for named in positions(leader)))
    finally:
        may_flush.set()


@on_loop
async def test_a_log_that_diverges_is_truncated_to_the_end_of_the_common_epoch(make_partition: Make) -> None:
    partition = follower(make_partition, 1, 1, 3, 3)
    leader = Leader(response(diverging_epoch=EpochEndOffset(2, 9)))
    async with fetching(leader, partition) as fetcher:
        assert partition.log.log_end_offset == 2
        assert fetcher.truncations_count == 1
    assert positions(leader)[:2] == [[(4, 3)], [(2, 1)]]


@on_loop
async def test_a_log_before_the_leaders_starts_again_there(make_partition: Make) -> None:
    partition = follower(make_partition, 1)
    leader = Leader(response(error_code=ErrorCode.OFFSET_OUT_OF_RANGE), start_offset=40, end_offset=50)
    async with fetching(leader, partition):
        assert (partition.log.log_start_offset, partition.log.log_end_offset) == (40, 40)


@on_loop
async def test_a_log_begins_with_the_batch_that_contains_the_leaders_log_start(make_partition: Make) -> None:
    partition = follower(make_partition)
    records = batch(b"a", b"b", b"c")
    records[12:16] = (5).to_bytes(4)
    leader = Leader(
        response(error_code=ErrorCode.OFFSET_OUT_OF_RANGE),
        response(records=bytes(records), high_watermark=3, log_start_offset=1),
        start_offset=1,
        end_offset=3,
    )
    async with fetching(leader, partition):
        assert (partition.log.log_start_offset, partition.log.log_end_offset) == (1, 3)
    assert positions(leader)[:3] == [[(0, -1)], [(1, -1)], [(3, 5)]]


@on_loop
async def test_a_log_beyond_the_leaders_is_truncated_to_its_end(make_partition: Make) -> None:
    partition = follower(make_partition, 1, 1, 1)
    leader = Leader(response(error_code=ErrorCode.OFFSET_OUT_OF_RANGE), end_offset=2)
    async with fetching(leader, partition):
        assert partition.log.log_end_offset == 2


@on_loop
async def test_a_leader_that_does_not_know_its_end_truncates_nothing(make_partition: Make) -> None:
    partition = follower(make_partition, 1, 1, 1)
    leader = Leader(response(error_code=ErrorCode.OFFSET_OUT_OF_RANGE), end_offset=-1)
    async with fetching(leader, partition):
        assert partition.log.log_end_offset == 3


@on_loop
async def test_a_broker_that_leads_meanwhile_truncates_nothing(make_partition: Make) -> None:
    partition = follower(make_partition, 1, 1, 1)
    leader = Leader(response(error_code=ErrorCode.OFFSET_OUT_OF_RANGE), end_offset=0)
    leader.before_offsets = lambda: partition.update_state(
        PartitionRegistration(1, 6, (1, 2), 1, replicas=(1, 2))
    )
    async with fetching(leader, partition):
        assert partition.log.log_end_offset == 3


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH])
@on_loop
async def test_a_leader_that_does_not_know_its_election_yet_is_asked_again_soon(
    make_partition: Make, code: ErrorCode
) -> None:
    partition = follower(make_partition)
    not_yet = [response(error_code=code) for _ in range(3)]
    leader = Leader(*not_yet, response(records=leader_batch(0, 5)))
    async with fetching(leader, partition, backoff_ms=60_000) as fetcher:
        assert partition.log.log_end_offset == 1
        assert fetcher.statistics()["paused_count"] == 0
    named = [named for named in positions(leader) if named]
    assert named == [[(0, -1)]] * 4 + [[(1, 5)]]


@on_loop
async def test_a_fetch_waits_no_longer_than_until_a_paused_partition_is_named_again(
    make_partition: Make,
) -> None:
    leader = Leader(response(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    async with fetching(leader, follower(make_partition), backoff_ms=60_000) as fetcher:
        fetcher._paused[TopicIdPartition(b"p" * 16, 1)] = fetcher._clock.monotonic_ms() + 100
        fetches_count = len(leader.fetches)
        await reached(lambda: len(leader.fetches) > fetches_count + 1)
        assert leader.fetches[-1].max_wait_ms <= 100
    assert leader.fetches[0].max_wait_ms == 500


@on_loop
async def test_a_refused_partition_is_named_again_after_a_pause(make_partition: Make) -> None:
    partition = follower(make_partition)
    refused = response(error_code=ErrorCode.UNKNOWN_TOPIC_ID)
    leader = Leader(refused, response(records=leader_batch(0, 5)))
    async with fetching(leader, partition):
        assert partition.log.log_end_offset == 1
    assert positions(leader)[:2] == [[(0, -1)], [(0, -1)]]


@on_loop
async def test_a_lost_connection_begins_a_new_session(make_partition: Make) -> None:
    partition = follower(make_partition)
    lost = ConnectionLost(BrokerAddress("h", 1), "lost")
    leader = Leader(response(), lost, response(records=leader_batch(0, 5)))
    async with fetching(leader, partition):
        assert partition.log.log_end_offset == 1
    assert [fetch.session_epoch for fetch in leader.fetches[:4]] == [0, 1, 0, 1]
    assert positions(leader)[:3] == [[(0, -1)], [], [(0, -1)]]


@on_loop
async def test_what_a_log_may_lack_in_its_midst_is_copied_again(make_partition: Make) -> None:
    partition = follower(make_partition, 5, 5, 5)
    partition.log.gap_offset = 1
    leader = Leader(FetchResponse(session_id=SESSION), response(records=leader_batch(1, 5, b"y")))
    async with fetching(leader, partition):
        assert partition.log.gap_offset is None
        assert not partition.log.local.has_unsynced_cut, "a power failure cannot undo the truncation any more"
        assert partition.log.log_end_offset == 2
    assert positions(leader)[:2] == [[], [(1, 5)]]


@on_loop
async def test_a_throttled_partition_leaves_the_session_until_it_may_copy_again(make_partition: Make) -> None:
    partition, clock = follower(make_partition), ManualClock()
    partition.update_state(PartitionRegistration(2, 5, (2,), replicas=(1, 2)))
    leader = Leader(response(records=leader_batch(0, 5), high_watermark=0))
    async with fetching(leader, partition, limit=throttle(1, "0:1", clock=clock, window_ms=20)):
        await reached(lambda: len(leader.fetches) >= 2)
        first, second = leader.fetches[:2]
        assert [len(topic.partitions) for topic in first.topics] == [1]
        assert second.topics == []
        assert [topic.partitions for topic in second.forgotten_topics_data] == [[0]]
        clock.advance(60_000_000)
        leader.has_answered.clear()
        await reached(lambda: positions(leader)[-1] == [(1, 5)])


@on_loop
async def test_a_throttled_partition_that_is_in_sync_is_copied_without_a_limit(make_partition: Make) -> None:
    partition = follower(make_partition)
    answers = [response(records=leader_batch(offset, 5), high_watermark=0) for offset in range(3)]
    async with fetching(Leader(*answers), partition, limit=throttle(1, "*")):
        assert partition.log.log_end_offset == 3
