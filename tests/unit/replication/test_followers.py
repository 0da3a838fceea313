"""What a leader knows about its followers: high watermark, in-sync replicas, lag."""

import asyncio
import mmap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicIdPartition
from barnabas.log.segments.segment import MAP_BYTES_MIN
from barnabas.metadata.topics import PartitionRegistration
from barnabas.replication.delayed_fetch import DelayedFetch
from barnabas.replication.follower_session import FollowedPartition, FollowerSession
from barnabas.replication.follower_sessions import FollowerSessions
from barnabas.replication.partition import Partition
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import iterate_headers
from support.batches import batch
from support.images import new_topic
from support.loop import in_virtual_time, turns
from support.nodes import running_node
from support.throttles import throttle

Make = Callable[..., Partition]
THREE = (1, 2, 3)
LAG_MS = 1000
KEY = TopicIdPartition(b"t" * 16, 0)


def sessions_of(find: Callable[[], Partition | None]) -> FollowerSessions:
    """Return the sessions of a leader that has one partition, or none yet."""
    replicas = SimpleNamespace(find_by_id=lambda *_: find(), partition_by_id=lambda *_: find())
    return FollowerSessions(cast("ReplicaManager", replicas), throttle(), Random(1))


def led(make: Make, isr: tuple[int, ...] = THREE, records_count: int = 2, **config: Any) -> Partition:
    """Return a partition that broker 1 leads, with some records."""
    partition = make(THREE, PartitionRegistration(1, 0, isr, replicas=THREE), **config)
    for _ in range(records_count):
        partition.append_as_leader(batch(b"x"), 1)
    return partition


def test_the_high_watermark_is_what_each_in_sync_replica_has(make_partition: Make) -> None:
    partition = led(make_partition)
    partition.update_follower(2, 0, 0, 2)
    assert partition.log.high_watermark == 0
    partition.update_follower(3, 0, 0, 1)
    assert partition.log.high_watermark == 1
    partition.update_follower(3, 0, 0, 2)
    assert partition.log.high_watermark == 2


@pytest.mark.parametrize(("broker_id", "end_offset"), [(9, 2), (2, 3)])
def test_a_follower_that_cannot_be_is_ignored(make_partition: Make, broker_id: int, end_offset: int) -> None:
    partition = led(make_partition)
    partition.update_follower(broker_id, 0, 0, end_offset)
    assert partition.follower_end_offsets == {}


def test_the_high_watermark_stands_still_below_min_insync_replicas(make_partition: Make) -> None:
    partition = led(make_partition, isr=(1,), min_insync_replicas=2)
    assert partition.log.high_watermark == 0
    partition.update_state(PartitionRegistration(1, 0, (1, 2), 1, THREE))
    partition.update_follower(2, 0, 0, 2)
    assert partition.log.high_watermark == 2


def test_the_high_watermark_follows_a_lower_min_insync_replicas(make_partition: Make) -> None:
    partition = led(make_partition, isr=(1,), min_insync_replicas=2)
    partition.reconfigure(replace(partition.log.config, min_insync_replicas=1))
    assert partition.log.high_watermark == 2


def test_the_high_watermark_never_passes_a_follower_while_the_leader_flushes(make_partition: Make) -> None:
    partition: Partition

    def flush(_log: object) -> None:
        partition.log.flush()  # as if the flush were done at once

    partition = led(make_partition, isr=(1, 2), flush_soon=flush, flush_messages=1)
    partition.update_follower(2, 0, 0, 1)
    assert partition.log.recovery_point == 2
    assert partition.log.high_watermark == 1


def test_a_follower_outside_the_isr_that_has_caught_up_is_announced(make_partition: Make) -> None:
    partition = led(make_partition, isr=(1, 2))
    caught_up: list[Partition] = []
    partition.on_caught_up = caught_up.append
    partition.update_follower(2, 5, 0, 2)
    partition.update_follower(3, 7, 0, 1)
    assert caught_up == []
    partition.update_follower(3, 7, 0, 2)
    assert caught_up == [partition]
    change = partition.request_isr()
    assert change is not None
    assert (change.isr, change.broker_epochs, change.partition_epoch) == ((1, 2, 3), {3: 7}, 0)


def test_a_follower_joins_only_with_everything_before_the_leader_epoch(make_partition: Make) -> None:
    partition = led(make_partition, isr=(1, 2), records_count=5)
    partition.update_state(PartitionRegistration(2, 1, (1, 2), 1, THREE))
    partition.update_state(PartitionRegistration(1, 2, (1, 2), 2, THREE))
    partition.update_follower(3, 0, 0, 4)  # the high watermark is 0
    assert partition.caught_up_followers() == []
    partition.update_follower(3, 0, 0, 5)
    assert partition.caught_up_followers() == [3]


def test_a_follower_that_has_caught_up_joins_although_it_lagged_before(make_partition: Make) -> None:
    partition = led(make_partition, isr=(1, 2))
    partition.update_follower(3, 7, 0, 2)
    change = partition.request_isr(lagging=[2, 3])
    assert change is not None
    assert change.isr == (1, 3)


def test_until_a_change_is_committed_the_high_watermark_respects_both_states(make_partition: Make) -> None:
    partition = led(make_partition, isr=(1, 2))
    partition.update_follower(2, 0, 0, 2)
    partition.update_follower(3, 0, 0, 2)
    partition.request_isr(lagging=[2])
    partition.append_as_leader(batch(b"y"), 1)
    for broker_id in (2, 3):
        assert partition.log.high_watermark == 2
        partition.update_follower(broker_id, 0, 0, 3)
    assert partition.log.high_watermark == 3


def test_a_refused_change_does_not_hold_the_high_watermark_back(make_partition: Make) -> None:
    partition = led(make_partition, isr=(1, 2))
    partition.update_follower(2, 0, 0, 2)
    partition.update_follower(3, 0, 0, 2)
    partition.request_isr()
    partition.append_as_leader(batch(b"y"), 1)
    partition.update_follower(2, 0, 0, 3)
    assert partition.log.high_watermark == 2
    partition.cancel_isr_request()
    assert partition.log.high_watermark == 3


def test_a_follower_lags_if_it_lacks_a_record_for_long(make_partition: Make) -> None:
    partition = led(make_partition)
    for broker_id in (2, 3):
        partition.update_follower(broker_id, 0, 0, 2)
    assert partition.lagging_followers(0, LAG_MS) == []
    partition.append_as_leader(batch(b"y"), 1)
    assert partition.lagging_followers(100, LAG_MS) == []
    partition.update_follower(2, 0, 0, 3)
    partition.append_as_leader(batch(b"z"), 1)
    assert partition.lagging_followers(1000, LAG_MS) == []
    assert partition.lagging_followers(1101, LAG_MS) == [3]
    assert partition.lagging_followers(2001, LAG_MS) == [2, 3]


def test_a_removed_follower_is_unknown_until_it_fetches_again(make_partition: Make) -> None:
    partition = led(make_partition)
    partition.update_follower(3, 0, 0, 2)
    partition.update_state(PartitionRegistration(1, 0, (1, 2), 1, THREE))
    assert partition.caught_up_followers() == []
    partition.update_follower(3, 1, 0, 2)
    assert partition.caught_up_followers() == [3]


def test_a_new_leader_epoch_begins_without_knowledge(make_partition: Make) -> None:
    partition = led(make_partition)
    partition.update_follower(2, 0, 0, 2)
    partition.update_state(replace(PartitionRegistration(1, 0, THREE, 1, THREE), leader_epoch=1))
    assert partition.follower_end_offsets == {}


def test_a_follower_does_not_lag_because_of_what_it_lacked_in_an_earlier_epoch(make_partition: Make) -> None:
    partition = led(make_partition)
    assert partition.lagging_followers(0, LAG_MS) == []
    partition.update_state(PartitionRegistration(2, 1, THREE, 1, THREE))
    partition.update_state(PartitionRegistration(1, 2, THREE, 2, THREE))
    assert partition.lagging_followers(5 * LAG_MS, LAG_MS) == []


def test_sessions_of_followers_learn_of_appends_and_of_the_end_of_leadership(make_partition: Make) -> None:
    partition, session = led(make_partition), FollowerSession(1, 2)
    partition.add_follower_session(session)
    partition.append_as_leader(batch(b"y"), 1)
    assert session.poll_marked(9) == [(partition.topic_id, 0)]
    assert not session.has_marked
    partition.update_state(PartitionRegistration(2, 1, THREE, 1, THREE))
    assert session.poll_marked(9) == [(partition.topic_id, 0)]
    partition.remove_follower_session(session)
    partition.close()
    assert not session.has_marked


@pytest.mark.parametrize("high_watermark", [2, 9])
def test_offsets_without_records_are_not_read_again_and_again(
    make_partition: Make, high_watermark: int
) -> None:
    partition = led(make_partition)
    partition.log.log_end_offset = 9  # a power failure has taken the records before an empty segment
    partition.log.update_high_watermark(high_watermark)
    session, sessions = FollowerSession(1, 2), sessions_of(lambda: partition)
    sessions.update_target(session, KEY, FollowedPartition(2, 0, -1, 0, 1 << 20), 0)
    for _ in range(2):
        sessions.read(session, 1 << 20)
    assert not session.has_marked


def test_a_follower_that_was_removed_after_its_last_news_joins_again_with_its_next_fetch(
    make_partition: Make,
) -> None:
    partition = led(make_partition)
    sessions = sessions_of(lambda: partition)
    session = sessions.begin(2, 0, 0)
    key = TopicIdPartition(partition.topic_id, 0)
    sessions.update_target(session, key, FollowedPartition(2, 0, 0, 0, 1_000), 7)
    partition.update_state(PartitionRegistration(1, 0, (1, 3), 1, THREE))
    assert partition.caught_up_followers() == []
    sessions.store_missing_positions(session, 7)
    assert partition.caught_up_followers() == [2]
    change = partition.request_isr()
    assert change is not None
    assert change.broker_epochs == {2: 7}


def test_a_request_of_an_earlier_session_that_is_still_read_changes_nothing(make_partition: Make) -> None:
    partition = led(make_partition)
    sessions = sessions_of(lambda: partition)
    earlier, later = sessions.begin(2, 0, 0), sessions.begin(2, 0, 0)
    sessions.update_target(later, KEY, FollowedPartition(2, 0, 0, 0, 1_000), 7)
    sessions.update_target(earlier, KEY, FollowedPartition(1, 0, 0, 0, 1_000), 7)
    assert partition.follower_end_offsets == {2: 2}
    partition.append_as_leader(batch(b"y"), 1)
    assert (earlier.has_marked, later.has_marked) == (False, True)


def test_a_partition_that_the_leader_opens_after_a_follower_has_named_it_is_followed(
    make_partition: Make,
) -> None:
    opened: list[Partition] = []
    sessions = sessions_of(lambda: opened[0] if opened else None)
    session, key = sessions.begin(2, 0, 0), TopicIdPartition(b"t" * 16, 0)
    sessions.update_target(session, key, FollowedPartition(0, 0, -1, 0, 1_000), 7)
    opened.append(partition := led(make_partition, records_count=0))
    assert [data.error_code for _, data in sessions.read(session, 1_000)] == [0]
    sessions.store_missing_positions(session, 7)
    assert partition.follower_end_offsets == {2: 0}
    sessions.read(session, 1_000)
    partition.append_as_leader(batch(b"x"), 1)
    assert session.has_marked


def test_the_position_that_a_follower_named_before_the_leader_knew_its_election_is_stored(
    make_partition: Make,
) -> None:
    partition = led(make_partition)
    sessions = sessions_of(lambda: partition)
    session, key = sessions.begin(2, 0, 0), TopicIdPartition(b"t" * 16, 0)
    sessions.update_target(session, key, FollowedPartition(2, 1, 0, 0, 1_000), 7)
    sessions.store_missing_positions(session, 7)
    assert partition.follower_end_offsets == {}
    partition.update_state(PartitionRegistration(1, 1, THREE, 1, THREE))
    assert [data.error_code for _, data in sessions.read(session, 1_000)] == [0]
    sessions.store_missing_positions(session, 7)
    assert partition.follower_end_offsets == {2: 2}


def test_a_follower_that_has_truncated_its_log_learns_the_high_watermark_again(make_partition: Make) -> None:
    partition = led(make_partition, isr=(1,))
    sessions = sessions_of(lambda: partition)
    session, key = sessions.begin(2, 0, 0), TopicIdPartition(partition.topic_id, 0)
    sessions.update_target(session, key, FollowedPartition(5, 0, 0, 0, 1_000), 7)
    [(_, diverging)] = sessions.read(session, 1_000)
    assert diverging.diverging_epoch == (0, 2)
    sessions.update_target(session, key, FollowedPartition(2, 0, 0, 0, 1_000), 7)
    assert [data.high_watermark for _, data in sessions.read(session, 1_000)] == [2]


@pytest.mark.parametrize("max_bytes", [1, 0, -1])
def test_a_follower_gets_a_batch_at_a_time_whatever_little_it_wants(
    make_partition: Make, max_bytes: int
) -> None:
    partition = led(make_partition, records_count=2)
    sessions = sessions_of(lambda: partition)
    session, key = sessions.begin(2, 0, 0), TopicIdPartition(partition.topic_id, 0)
    fetched: list[int] = []
    for offset in range(3):
        sessions.update_target(session, key, FollowedPartition(offset, 0, 0, 0, max_bytes), 7)
        for _, data in sessions.read(session, max_bytes):
            fetched += [header.base_offset for _, header in iterate_headers(data.records)]
        assert not session.has_marked
    assert fetched == [0, 1]


def test_an_empty_follower_that_begins_after_the_end_is_out_of_range(make_partition: Make) -> None:
    """It was emptied to begin at the start of another leader's log, whose records this leader lacks."""
    partition = led(make_partition, isr=(1,))
    sessions = sessions_of(lambda: partition)
    session, key = sessions.begin(2, 0, 0), TopicIdPartition(partition.topic_id, 0)
    sessions.update_target(session, key, FollowedPartition(5, 0, -1, 0, 1_000), 7)
    assert [data.error_code for _, data in sessions.read(session, 1_000)] == [ErrorCode.OFFSET_OUT_OF_RANGE]
    sessions.update_target(session, key, FollowedPartition(2, 0, -1, 0, 1_000), 7)
    assert [data.error_code for _, data in sessions.read(session, 1_000)] == [ErrorCode.NONE]


def test_what_may_be_truncated_while_it_is_sent_is_copied(make_partition: Make) -> None:
    partition = led(make_partition, isr=(1, 2), records_count=0)
    for _ in range(2):
        partition.append_as_leader(batch(bytes(MAP_BYTES_MIN)), 1)
    partition.update_follower(2, 0, 0, 1)
    sessions = sessions_of(lambda: partition)
    session, key = sessions.begin(3, 0, 0), TopicIdPartition(partition.topic_id, 0)
    offsets, is_mapped = [], []
    for offset in (0, 1):
        sessions.update_target(session, key, FollowedPartition(offset, 0, 0, 0, 1 << 24), 7)
        [(_, data)] = sessions.read(session, 1 << 24)
        offsets.append([header.base_offset for _, header in iterate_headers(data.records)])
        is_mapped.append(isinstance(memoryview(data.records).obj, mmap.mmap))
    assert (offsets, is_mapped) == ([[0], [1]], [True, False])


def test_partitions_are_taken_in_their_order_and_the_others_stay() -> None:
    session = FollowerSession(1, 2)
    keys = [TopicIdPartition(bytes(16), index) for index in range(5)]
    for key in keys:
        session.mark(key, wakes=False)
    assert session.poll_marked(2) == keys[:2]
    assert session.poll_marked(9) == keys[2:]


@in_virtual_time
async def test_a_throttled_follower_that_is_not_in_sync_gets_the_next_records_later(
    make_partition: Make,
) -> None:
    clock = ManualClock()
    partition = led(make_partition)
    partition.update_state(PartitionRegistration(1, 0, (1, 3), 1, THREE))
    replicas = SimpleNamespace(find_by_id=lambda *_: partition, partition_by_id=lambda *_: partition)
    sessions = FollowerSessions(replicas, throttle(10, "*", clock=clock), Random(1))  # type: ignore[arg-type]
    key = TopicIdPartition(partition.topic_id, 0)

    def fetch(broker_id: int, offset: int) -> bytes:
        session = sessions.begin(broker_id, 0, 0)
        sessions.update_target(session, key, FollowedPartition(offset, 0, 0, 0, 1), 7)
        return b"".join(data.records for _, data in sessions.read(session, 1))

    assert fetch(2, 0)
    assert not fetch(2, 1)
    assert fetch(3, 1)
    session = sessions.begin(2, 0, 0)
    sessions.update_target(session, key, FollowedPartition(1, 0, 0, 0, 1), 7)
    sessions.read(session, 1)
    assert not session.has_marked
    began_s = asyncio.get_running_loop().time()
    await session.wait(60_000)
    assert asyncio.get_running_loop().time() - began_s == pytest.approx(1)
    clock.advance(60_000)
    assert [data.records != b"" for _, data in sessions.read(session, 1)] == [True]
    sessions.close()


@in_virtual_time
async def test_an_append_ends_the_wait_of_a_follower_but_a_high_watermark_does_not() -> None:
    session, key = FollowerSession(1, 2), TopicIdPartition(bytes(16), 0)
    loop = asyncio.get_running_loop()
    for wakes, waited_s in ((False, 0.5), (True, 0.1)):
        began_s = loop.time()
        loop.call_later(0.1, lambda wakes=wakes: session.mark(key, wakes=wakes))
        await session.wait(500)
        assert loop.time() - began_s == pytest.approx(waited_s)


@in_virtual_time
async def test_a_reader_gets_records_when_the_followers_have_them(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        partition = node.partition("t")
        partition.update_state(PartitionRegistration(1, 0, (1, 2), 1, (1, 2)))
        partition.append_as_leader(batch(b"x"), 1)
        waiting = DelayedFetch(1)
        task = asyncio.ensure_future(waiting.wait([partition], 10_000))
        await turns(5)
        assert not task.done()
        partition.update_follower(2, 0, 0, 1)
        await turns(5)
        assert task.done()


def test_a_follower_takes_the_leaders_high_watermark_and_start_within_its_log(make_partition: Make) -> None:
    partition = led(make_partition)
    partition.update_state(PartitionRegistration(2, 1, THREE, 1, THREE))
    partition.follow_leader(high_watermark=9, log_start_offset=1)
    assert (partition.log.high_watermark, partition.log.log_start_offset) == (2, 1)


# Deleted records


@in_virtual_time
async def test_the_low_watermark_is_the_start_of_the_last_in_sync_replica(make_partition: Make) -> None:
    partition = led(make_partition)
    for broker_id in (2, 3):
        partition.update_follower(broker_id, 0, 0, 2)
    partition.delete_records(2)
    deleted = partition.when_deleted(2)
    assert deleted is not None
    partition.update_follower(2, 0, 2, 2)
    assert (partition.low_watermark, deleted.done()) == (0, False)
    partition.update_follower(3, 0, 2, 2)
    assert (partition.low_watermark, deleted.done()) == (2, True)
    assert partition.when_deleted(2) is None


@in_virtual_time
async def test_a_replica_that_leaves_the_isr_holds_no_deletion_back(make_partition: Make) -> None:
    partition = led(make_partition, isr=(1, 2))
    partition.update_follower(2, 0, 0, 2)
    partition.delete_records(1)
    deleted = partition.when_deleted(1)
    assert deleted is not None
    partition.update_state(PartitionRegistration(1, 0, (1,), 1, THREE))
    assert deleted.done()
    assert deleted.exception() is None


@in_virtual_time
async def test_a_deletion_fails_with_the_end_of_leadership(make_partition: Make) -> None:
    partition = led(make_partition, isr=(1, 2))
    partition.update_follower(2, 0, 0, 2)
    partition.delete_records(1)
    deleted = partition.when_deleted(1)
    assert deleted is not None
    partition.update_state(PartitionRegistration(2, 1, (1, 2), 1, THREE))
    assert isinstance(deleted.exception(), KafkaError)


# The high watermark of a new leader


def test_a_new_leader_knows_the_high_watermark_when_the_in_sync_replicas_have_what_it_had(
    make_partition: Make,
) -> None:
    partition = make_partition(THREE, PartitionRegistration(2, 0, THREE, replicas=THREE))
    partition.log.append_copied(batch(b"x"))
    assert partition.is_high_watermark_known
    partition.update_state(PartitionRegistration(1, 1, THREE, 1, THREE))
    assert not partition.is_high_watermark_known
    for broker_id in (2, 3):
        partition.update_follower(broker_id, 0, 0, 1)
    assert partition.is_high_watermark_known


@pytest.mark.parametrize(("replicas", "last_epoch"), [((1, 2), 7), ((1,), 0)])
def test_a_leader_with_a_gap_begins_its_epoch_there_if_it_has_followers(
    make_partition: Make, replicas: tuple[int, ...], last_epoch: int
) -> None:
    partition = make_partition(replicas, segment_bytes=2 * len(batch(b"x")))
    for _ in range(4):
        partition.append_as_leader(batch(b"x"), 1)
    first, second = partition.log.segments
    first.cut(len(batch(b"x")))
    partition.log.gap_offset = 1
    partition.update_state(PartitionRegistration(1, 7, (1,), 1, replicas))
    epochs = [header.partition_leader_epoch for segment in (first, second) for _, header in segment.headers()]
    assert epochs == [0, last_epoch, last_epoch]
    assert partition.log.epochs.end_offset_for(0, 4) == (0, 1 if last_epoch else 4)
