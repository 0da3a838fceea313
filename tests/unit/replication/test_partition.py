from collections.abc import Callable

import pytest

from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.topics import PartitionRegistration
from barnabas.replication.delayed_fetch import DelayedFetch
from barnabas.replication.partition import Partition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.control import EndTransactionMarker
from support.batches import batch, values_of
from support.loop import in_virtual_time
from support.transactions import begin_transaction

Make = Callable[..., Partition]
ALL, LEADER = -1, 1
THREE = (1, 2, 3)


def append(partition: Partition, *values: bytes, acks: int = ALL) -> int:
    """Append one batch of these values; return the log end offset."""
    return partition.append_as_leader(batch(*values), acks).last_offset + 1


def followed(partition: Partition, broker_id: int, end_offset: int) -> None:
    """Report that follower `broker_id` has everything below `end_offset`."""
    partition.follower_end_offsets[broker_id] = end_offset
    partition.update_state(PartitionRegistration(partition.leader, partition.leader_epoch, partition.isr))


def refused(partition: Partition, act: Callable[[], object]) -> KafkaError:
    end_offset = partition.log.log_end_offset
    with pytest.raises(KafkaError) as raised:
        act()
    assert partition.log.log_end_offset == end_offset
    return raised.value


@pytest.mark.parametrize(
    ("asked", "code"),
    [(-1, None), (5, None), (4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
@pytest.mark.parametrize("leader", [1, 2])
def test_the_leader_epoch_is_checked_before_leadership(
    make_partition: Make, asked: int, code: ErrorCode | None, leader: int
) -> None:
    partition = make_partition(THREE, PartitionRegistration(leader, 5, THREE))
    if code is None and leader == 1:
        partition.check_leader(asked)
        return
    error = refused(partition, lambda: partition.check_leader(asked))
    assert error.code is (code or ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert "t-0" in error.message
    if code:
        assert f"leader epoch {asked} in the request, current is 5" in error.message


def test_without_followers_records_are_readable_immediately(make_partition: Make) -> None:
    partition = make_partition()
    assert append(partition, b"a", b"b") == 2
    assert partition.log.high_watermark == 2
    found = partition.read(0, 1000, read_committed=False, min_one_batch=True)
    assert values_of(found.data) == [b"a", b"b"]


def test_appended_batches_carry_the_leaders_epoch(make_partition: Make) -> None:
    partition = make_partition((1,), PartitionRegistration(1, 7, (1,)))
    append(partition, b"a")
    assert partition.log.latest_epoch == 7


def test_the_high_watermark_is_the_lowest_end_offset_of_the_isr(make_partition: Make) -> None:
    partition = make_partition(THREE)
    append(partition, b"a", b"b", b"c")
    seen = []
    for broker_id, end_offset in ((2, 3), (3, 1), (3, 2), (3, 3)):
        followed(partition, broker_id, end_offset)
        seen.append(partition.log.high_watermark)
    assert seen == [0, 1, 2, 3]


def test_a_follower_out_of_sync_does_not_hold_back_the_high_watermark(make_partition: Make) -> None:
    partition = make_partition(THREE, PartitionRegistration(1, 0, (1, 2)))
    append(partition, b"a")
    followed(partition, 2, 1)
    assert partition.log.high_watermark == 1


def test_the_high_watermark_rises_when_a_slow_replica_leaves_the_isr(make_partition: Make) -> None:
    partition = make_partition(THREE)
    append(partition, b"a", b"b")
    followed(partition, 2, 2)
    assert partition.log.high_watermark == 0
    partition.update_state(PartitionRegistration(1, 0, (1, 2)))
    assert partition.log.high_watermark == 2


def test_the_high_watermark_never_falls_when_a_slow_replica_joins(make_partition: Make) -> None:
    partition = make_partition(THREE, PartitionRegistration(1, 0, (1,)))
    append(partition, b"a", b"b")
    partition.update_state(PartitionRegistration(1, 1, (1, 3)))
    followed(partition, 3, 1)
    assert partition.log.high_watermark == 2


def test_follower_state_of_an_earlier_leader_epoch_is_discarded(make_partition: Make) -> None:
    partition = make_partition((1, 2))
    append(partition, b"a")
    followed(partition, 2, 1)
    partition.update_state(PartitionRegistration(2, 1, (1, 2)))
    partition.log.append_copied(batch(b"b", base_offset=1, leader_epoch=1))
    partition.follower_end_offsets[2] = 2  # a fetch of the second epoch, processed late
    partition.update_state(PartitionRegistration(1, 2, (1, 2)))
    assert (partition.log.high_watermark, partition.log.log_end_offset) == (1, 2)
    followed(partition, 2, 2)
    assert partition.log.high_watermark == 2


def test_a_follower_does_not_advance_its_high_watermark_itself(make_partition: Make) -> None:
    partition = make_partition(THREE, PartitionRegistration(1, 0, (1,)))
    append(partition, b"a")
    partition.update_state(PartitionRegistration(2, 1, (2,)))
    partition.log.append_copied(batch(b"b", base_offset=1, leader_epoch=1))
    partition.update_state(PartitionRegistration(2, 1, (2, 1)))
    assert (partition.log.high_watermark, partition.log.log_end_offset) == (1, 2)
    assert not partition.is_leader


def test_unreplicated_records_cannot_be_read(make_partition: Make) -> None:
    partition = make_partition((1, 2))
    append(partition, b"a")
    append(partition, b"b")
    followed(partition, 2, 1)
    found = partition.read(0, 1000, read_committed=False, min_one_batch=True)
    assert values_of(found.data) == [b"a"]
    assert partition.read(1, 1000, read_committed=True, min_one_batch=True).size_bytes == 0


@pytest.mark.parametrize(
    ("isr", "acks", "fits"), [((1,), ALL, False), ((1,), LEADER, True), ((1, 2), ALL, True)]
)
def test_acks_all_needs_min_insync_replicas(
    make_partition: Make, isr: tuple[int, ...], acks: int, fits: bool
) -> None:
    partition = make_partition(THREE, PartitionRegistration(1, 0, isr, replicas=THREE), min_insync_replicas=2)
    if fits:
        assert append(partition, b"a", acks=acks) == 1
        return
    error = refused(partition, lambda: append(partition, b"a", acks=acks))
    assert error.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert "1 in-sync replica, min.insync.replicas is 2" in error.message


def test_acks_all_needs_no_more_replicas_than_there_are(make_partition: Make) -> None:
    partition = make_partition((1,), min_insync_replicas=2)
    assert append(partition, b"a", acks=ALL) == 1


@pytest.mark.parametrize(("offset", "expected"), [(0, 0), (1, 1), (3, 3), (-1, 3)])
def test_records_are_deleted_up_to_the_high_watermark(
    make_partition: Make, offset: int, expected: int
) -> None:
    partition = make_partition()
    append(partition, b"a", b"b", b"c")
    assert partition.delete_records(offset) == expected
    assert partition.log.log_start_offset == expected


@pytest.mark.parametrize("offset", [-2, 2, 3, 100])
def test_records_above_the_high_watermark_are_not_deleted(make_partition: Make, offset: int) -> None:
    partition = make_partition((1, 2))
    append(partition, b"a", b"b", b"c")
    followed(partition, 2, 1)
    error = refused(partition, lambda: partition.delete_records(offset))
    assert error.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert f"before offset {offset}: the high watermark is 1" in error.message


def test_deleting_before_the_log_start_changes_nothing(make_partition: Make) -> None:
    partition = make_partition()
    append(partition, b"a", b"b", b"c")
    partition.delete_records(2)
    assert partition.delete_records(1) == 2


@in_virtual_time
async def test_a_produce_request_waits_until_its_records_are_replicated(make_partition: Make) -> None:
    partition = make_partition((1, 2))
    first, second = append(partition, b"a"), append(partition, b"b")
    one, two = partition.when_replicated(first), partition.when_replicated(second)
    assert one is not None
    assert two is not None
    assert not one.done()
    followed(partition, 2, 1)
    assert (one.done(), two.done()) == (True, False)
    followed(partition, 2, 2)
    assert two.done()
    assert partition.when_replicated(second) is None


@in_virtual_time
async def test_cancelled_waiters_are_skipped(make_partition: Make) -> None:
    partition = make_partition((1, 2))
    wait = partition.when_replicated(append(partition, b"a"))
    assert wait is not None
    wait.cancel()
    followed(partition, 2, 1)
    assert wait.cancelled()


@in_virtual_time
async def test_delayed_fetches_are_notified_with_the_new_bytes(make_partition: Make) -> None:
    class Counting(DelayedFetch):
        notified_bytes: list[int]

        def readable(self, size_bytes: int) -> None:
            self.notified_bytes.append(size_bytes)

    partition = make_partition((1, 2), PartitionRegistration(1, 0, (1,)))
    waiting = Counting(1000)
    waiting.notified_bytes = []
    partition.add_delayed_fetch(waiting)
    records = batch(b"a")
    partition.append_as_leader(records, ALL)
    assert waiting.notified_bytes == [len(records)]
    partition.update_state(PartitionRegistration(1, 0, (1, 2)))
    longer = batch(b"longer")
    partition.append_as_leader(longer, ALL)
    assert waiting.notified_bytes == [len(records)]
    followed(partition, 2, 2)
    assert waiting.notified_bytes == [len(records), len(longer)]
    partition.remove_delayed_fetch(waiting)
    append(partition, b"c")
    followed(partition, 2, 3)
    assert len(waiting.notified_bytes) == 2


@in_virtual_time
async def test_a_delayed_fetch_waits_for_its_bytes_until_followers_have_them(make_partition: Make) -> None:
    partition = make_partition((1, 2))
    records = batch(b"a")
    waiting = DelayedFetch(2 * len(records))
    partition.add_delayed_fetch(waiting)
    partition.append_as_leader(records, ALL)
    append(partition, b"b")
    partition.update_follower(2, 0, 0, 1)
    assert not waiting._future.done()
    partition.update_follower(2, 0, 0, 2)
    assert waiting._future.done()


@in_virtual_time
async def test_a_delayed_fetch_waits_for_its_bytes_until_they_are_flushed(make_partition: Make) -> None:
    partition = make_partition(flush_messages=1)
    log, records = partition.log, batch(b"a")
    waiting = DelayedFetch(2 * len(records))
    partition.add_delayed_fetch(waiting)
    for is_enough, appended in ((False, records), (True, batch(b"b"))):
        partition.append_as_leader(appended, LEADER)
        log.flush()
        log.on_flushed()
        assert waiting._future.done() is is_enough


@in_virtual_time
async def test_a_delayed_fetch_from_a_follower_waits_for_its_bytes(make_partition: Make) -> None:
    partition = make_partition((1, 2))
    records = batch(b"a")
    partition.append_as_leader(records, LEADER)
    append(partition, b"b")
    partition.update_state(PartitionRegistration(2, 1, (1, 2)))
    waiting = DelayedFetch(2 * len(records))
    partition.add_delayed_fetch(waiting)
    partition.follow_leader(high_watermark=1, log_start_offset=0)
    assert not waiting._future.done()
    partition.follow_leader(high_watermark=2, log_start_offset=0)
    assert waiting._future.done()


@in_virtual_time
async def test_a_delayed_fetch_ends_when_readable_bytes_are_in_another_segment(make_partition: Make) -> None:
    partition = make_partition((1, 2))
    waiting = DelayedFetch(1000)
    partition.add_delayed_fetch(waiting)
    append(partition, b"a")
    partition.log.roll()
    append(partition, b"b")
    partition.update_follower(2, 0, 0, 2)
    assert waiting._future.done()


@in_virtual_time
async def test_a_delayed_fetch_ends_when_readable_bytes_cannot_be_counted(
    make_partition: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def size_between(start_offset: int, end_offset: int) -> int:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "damaged")

    partition = make_partition((1, 2))
    waiting = DelayedFetch(1000)
    partition.add_delayed_fetch(waiting)
    append(partition, b"a")
    monkeypatch.setattr(partition.log.local, "size_between", size_between)
    partition.update_follower(2, 0, 0, 1)
    assert waiting._future.done()


@in_virtual_time
async def test_closing_a_partition_releases_every_waiter(make_partition: Make) -> None:
    partition = make_partition((1, 2))
    produce, given_up = (partition.when_replicated(append(partition, b"a")) for _ in range(2))
    assert produce is not None
    assert given_up is not None
    given_up.cancel()
    fetch = DelayedFetch(1000)
    partition.add_delayed_fetch(fetch)
    partition.close()
    with pytest.raises(KafkaError) as raised:
        await produce
    assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    await fetch.wait([], 1_000_000)
    assert not partition.is_leader
    assert refused(partition, partition.check_leader).code is ErrorCode.NOT_LEADER_OR_FOLLOWER


@in_virtual_time
async def test_losing_leadership_releases_every_waiter(make_partition: Make) -> None:
    partition = make_partition((1, 2))
    produce = partition.when_replicated(append(partition, b"a"))
    assert produce is not None
    fetch = DelayedFetch(1000)
    partition.add_delayed_fetch(fetch)
    partition.update_state(PartitionRegistration(2, 1, (2, 1)))
    with pytest.raises(KafkaError, match="Broker 1 does not lead t-0 any longer"):
        await produce
    await fetch.wait([], 1_000_000)


@in_virtual_time
async def test_statistics_have_the_leader_and_waiters(make_partition: Make) -> None:
    partition = make_partition((1, 2), PartitionRegistration(1, 3, (1, 2)))
    partition.add_delayed_fetch(DelayedFetch(1))
    found = partition.statistics()
    assert (found["leader"], found["leader_epoch"], found["isr"]) == (1, 3, (1, 2))
    assert (found["delayed_fetches_count"], found["log_end_offset"]) == (1, 0)


@in_virtual_time
async def test_read_committed_fetches_are_woken_by_the_end_of_a_transaction(
    make_partition: Make,
) -> None:
    partition = make_partition()
    committed, uncommitted = DelayedFetch(1, read_committed=True), DelayedFetch(1)
    partition.add_delayed_fetch(committed)
    partition.add_delayed_fetch(uncommitted)
    begin_transaction(partition, 9, b"a")
    append(partition, b"b")
    assert (committed._future.done(), uncommitted._future.done()) == (False, True)
    partition.append_transaction_marker(EndTransactionMarker(9, 0, 0, True, 1_000), 0)
    assert committed._future.done()


@in_virtual_time
async def test_read_committed_fetches_count_stable_bytes_only(make_partition: Make) -> None:
    partition = make_partition()
    begin_transaction(partition, 9, b"x" * 100)
    first_bytes = partition.log.size_bytes
    begin_transaction(partition, 10, b"x" * 1000)
    waiting = DelayedFetch(first_bytes + 1, read_committed=True)
    partition.add_delayed_fetch(waiting)
    partition.append_transaction_marker(EndTransactionMarker(9, 0, 0, True, 1_000), 0)
    assert partition.log.last_stable_offset == 1
    assert not waiting._future.done()
    partition.append_transaction_marker(EndTransactionMarker(10, 0, 0, False, 1_000), 0)
    assert waiting._future.done()


def test_a_marker_needs_the_leader_and_min_insync_replicas(make_partition: Make) -> None:
    ended = EndTransactionMarker(9, 0, 0, True, 1_000)
    other = make_partition(THREE, PartitionRegistration(2, 0, THREE))
    error = refused(other, lambda: other.append_transaction_marker(ended, 0))
    assert error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_consumers_read_a_record_that_must_be_flushed_when_it_is(make_partition: Make) -> None:
    to_flush: list[PartitionLog] = []
    partition = make_partition(flush_soon=to_flush.append, flush_messages=1)
    log = partition.log
    partition.append_as_leader(batch(b"x"), 1)
    assert log.high_watermark == 0
    assert to_flush == [log]
    log.flush()
    partition.append_as_leader(batch(b"during the flush"), 1)
    log.on_flushed()
    assert log.high_watermark == 1
    to_flush.clear()
    partition.update_state(PartitionRegistration(1, 1, (1,)))
    assert (log.high_watermark, to_flush) == (1, [log])
    log.flush()
    log.on_flushed()
    assert log.high_watermark == 2
