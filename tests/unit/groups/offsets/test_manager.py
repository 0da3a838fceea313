"""Commits, fetches, deletions and expiry of offsets."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.groups.offsets.manager import LOOKED_AT_OFFSETS_MAX
from barnabas.groups.statistics import GroupCounts
from barnabas.wire.coordinator_records.committed_offset import CommittedOffset, encode_partition, encode_topic
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition
from barnabas.wire.messages.offset_commit import OffsetCommitRequestTopic as CommitTopic
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from support.images import cluster, new_topic
from support.offsets import FakeGroup, OffsetLog, codes

DAY_MS = 24 * 60 * 60 * 1000
RETENTION_MS = 7 * DAY_MS
NEXT_ROUND = ("expire offsets", "next round")


def refused(error: pytest.ExceptionInfo[KafkaError]) -> ErrorCode:
    return error.value.code


# Commits


def test_a_commit_without_a_generation_creates_a_simple_group() -> None:
    log = OffsetLog()
    assert log.commit({"t": {0: (5, 2, "note"), 1: 6}}) == {("t", 0): 0, ("t", 1): 0}
    assert list(log.groups) == ["g"]
    assert log.stored() == {
        ("t", 0): CommittedOffset(5, 2, "note", 1_000),
        ("t", 1): CommittedOffset(6, -1, "", 1_000),
    }


@pytest.mark.parametrize(
    ("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_generation_of_a_missing_group_is_an_error(version: int, code: ErrorCode) -> None:
    log = OffsetLog()
    with pytest.raises(KafkaError) as error:
        log.commit({"t": {0: 5}}, version=version, generation_id_or_member_epoch=0)
    assert refused(error) is code
    with pytest.raises(KafkaError) as error:
        log.commit_in_transaction(7, {"t": {0: 5}}, version=version, generation_id=0)
    assert refused(error) is ErrorCode.ILLEGAL_GENERATION
    assert not log.log


def test_the_group_authorizes_commits_and_is_notified() -> None:
    log = OffsetLog()
    group = log.groups["g"] = FakeGroup("g")
    log.commit({"t": {0: 5}}, member_id="m")
    group.refusal = KafkaError(ErrorCode.ILLEGAL_GENERATION, "old")
    with pytest.raises(KafkaError):
        log.commit({"t": {0: 6}}, member_id="late")
    assert group.committers == ["m"]
    assert log.fetch("other") == {}


def test_a_stale_member_epoch_is_illegal_generation_in_a_transaction() -> None:
    log = OffsetLog()
    log.groups["g"] = FakeGroup("g", refusal=KafkaError(ErrorCode.STALE_MEMBER_EPOCH, "old"))
    with pytest.raises(KafkaError) as error:
        log.commit({"t": {0: 5}})
    assert refused(error) is ErrorCode.STALE_MEMBER_EPOCH
    with pytest.raises(KafkaError) as error:
        log.commit_in_transaction(7, {"t": {0: 5}})
    assert refused(error) is ErrorCode.ILLEGAL_GENERATION


def test_a_group_may_reject_the_commit_to_a_partition() -> None:
    log = OffsetLog(cluster(1, new_topic("t", 2)))
    topic_id = log.image.topics["t"].topic_id

    def check(checked_id: bytes, index: int) -> None:
        assert checked_id == topic_id
        if index == 1:
            raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH, "taken away")

    group = log.groups["g"] = FakeGroup("g", commit_check=check)
    assert log.commit({"t": {0: 5}}, member_id="m") == {("t", 0): 0}
    with pytest.raises(KafkaError):
        log.commit({"t": {0: 6, 1: 6}}, member_id="m")
    assert group.committers == ["m"]
    assert log.stored() == {("t", 0): CommittedOffset(5, -1, "", 1_000, topic_id=topic_id)}


def test_metadata_that_is_too_long_is_rejected_without_failing_others() -> None:
    log = OffsetLog(offset_metadata_max_bytes="3")
    offsets = {"t": {0: (1, -1, "abc"), 1: (1, -1, "abcd"), 2: (1, -1, "äöü"), 3: (1, -1, "a🙂b")}}
    expected = {("t", 0): 0, ("t", 1): ErrorCode.OFFSET_METADATA_TOO_LARGE, ("t", 2): 0}
    expected["t", 3] = ErrorCode.OFFSET_METADATA_TOO_LARGE  # Kafka counts UTF-16 units
    assert log.commit(offsets) == expected
    assert log.commit_in_transaction(7, offsets) == expected
    assert log.fetch() == {("t", 0): 1, ("t", 2): 1}


def test_the_clients_retention_and_timestamp_are_stored() -> None:
    log = OffsetLog()
    log.commit({"t": {0: 1}}, version=2, retention_time_ms=500)
    assert log.stored()["t", 0].expire_timestamp_ms == 1_500
    log.commit({"t": {0: 1}}, version=2, retention_time_ms=2**63 - 1)
    assert log.stored()["t", 0].expire_timestamp_ms == 2**63 - 1
    partition = OffsetCommitRequestPartition(0, 2, commit_timestamp=123, committed_metadata=None)
    request = OffsetCommitRequest("g", topics=[CommitTopic("t", partitions=[partition])])
    log.do(lambda result, pending: log.manager.commit(result, pending, request, 1))
    assert log.stored()["t", 0] == CommittedOffset(2, -1, "", 123)


# Transactions


@pytest.mark.parametrize("reloads", [False, True])
def test_transactional_offsets_appear_on_commit_and_vanish_on_abort(reloads: bool) -> None:
    log = OffsetLog()
    log.commit({"t": {0: 1, 1: 1}})
    log.commit_in_transaction(7, {"t": {0: 10}})
    log.commit_in_transaction(8, {"t": {1: 20}}, "g")
    if reloads:
        log.reload()
    unstable = f"error {ErrorCode.UNSTABLE_OFFSET_COMMIT.value}"
    assert log.fetch() == {("t", 0): 1, ("t", 1): 1}
    assert log.fetch(require_stable=True) == {("t", 0): unstable, ("t", 1): unstable}
    log.end(7, commit=True)
    assert log.fetch(require_stable=True) == {("t", 0): 10, ("t", 1): unstable}
    log.end(8, commit=False)
    assert log.fetch(require_stable=True) == {("t", 0): 10, ("t", 1): 1}


def test_a_transactional_commit_creates_its_group() -> None:
    log = OffsetLog()
    log.commit_in_transaction(7, {"t": {0: 10}})
    assert list(log.groups) == ["g"]
    assert log.fetch() == {}
    [partition] = log.fetch_these({"t": [0]}, stable=True).topics[0].partitions
    assert (partition.committed_offset, partition.error_code) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)


# Fetches


def test_partitions_without_an_offset_have_offset_minus_one() -> None:
    log = OffsetLog()
    log.commit({"t": {0: (5, 2, "note")}})
    [topic] = log.fetch_these({"t": [0, 1]}).topics
    answers = [
        (
            each.partition_index,
            each.committed_offset,
            each.committed_leader_epoch,
            each.metadata,
            each.error_code,
        )
        for each in topic.partitions
    ]
    assert answers == [(0, 5, 2, "note", 0), (1, -1, -1, "", 0)]
    assert log.fetch("nobody") == {}


def test_an_offset_of_a_former_topic_of_the_same_name_is_ignored() -> None:
    log = OffsetLog(cluster(1, new_topic("t")))
    log.commit({"t": {0: 5}})
    topic_id = log.image.topics["t"].topic_id
    for asked, offset in ((topic_id, 5), (bytes(15) + b"\1", -1)):
        [topic] = log.fetch_these({"t": [0]}, topic_id=asked).topics
        assert (topic.topic_id, topic.partitions[0].committed_offset) == (asked, offset)


def test_the_group_authorizes_fetches() -> None:
    log = OffsetLog()
    log.groups["g"] = FakeGroup("g", refusal=KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "who"))
    with pytest.raises(KafkaError):
        log.fetch(member_id="m", member_epoch=3)


# Deletions


def delete(
    log: OffsetLog, *indexes: int, topic: str = "t", group_id: str = "g"
) -> dict[tuple[str, int], int]:
    asked = [OffsetDeleteRequestPartition(index) for index in indexes]
    request = OffsetDeleteRequest(group_id, [OffsetDeleteRequestTopic(topic, asked)])
    return codes(log.do(lambda result, pending: log.manager.delete(result, pending, request)))


def test_existing_offsets_are_deleted() -> None:
    log = OffsetLog()
    log.commit({"t": {0: 1, 1: 1}})
    log.commit_in_transaction(7, {"t": {2: 1}})
    assert delete(log, 0, 2, 3) == {("t", 0): 0, ("t", 2): 0, ("t", 3): 0}
    assert len(log.last.records) == 2
    log.end(7, commit=True)
    assert log.fetch() == {("t", 1): 1}


def test_offsets_of_subscribed_topics_are_kept() -> None:
    log = OffsetLog()
    log.commit({"t": {0: 1}, "u": {0: 1}})
    log.groups["g"].subscribed = frozenset({"t"})
    assert delete(log, 0) == {("t", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}
    assert delete(log, 0, topic="u") == {("u", 0): 0}
    assert log.fetch() == {("t", 0): 1}


def test_offsets_of_a_missing_or_active_group_cannot_be_deleted() -> None:
    log = OffsetLog()
    with pytest.raises(KafkaError) as error:
        delete(log, 0)
    assert refused(error) is ErrorCode.GROUP_ID_NOT_FOUND
    log.groups["g"] = FakeGroup("g", refusal=KafkaError(ErrorCode.NON_EMPTY_GROUP, "busy"))
    with pytest.raises(KafkaError) as error:
        delete(log, 0)
    assert refused(error) is ErrorCode.NON_EMPTY_GROUP


def test_deleting_a_group_deletes_its_offsets_including_pending_ones() -> None:
    log = OffsetLog()
    log.commit({"t": {0: 1, 1: 1}})
    log.commit({"t": {0: 3}}, "other")
    log.commit_in_transaction(7, {"t": {1: 2, 2: 2}})
    parts: list[object] = []
    for _ in range(2):
        log.do(lambda result, pending: parts.append(log.manager.delete_some(result, "g", 2)))
        assert not log.last.is_atomic
    assert parts == [({TopicPartition("t", 0): 1, TopicPartition("t", 1): 1}, False), ({}, True)]
    log.end(7, commit=True)
    assert log.fetch() == {}
    assert log.fetch("other") == {("t", 0): 3}


def restored(
    log: OffsetLog, offsets: dict[int, CommittedOffset], group_id: str = "g", topic: str = "t"
) -> int:
    return int(log.do(lambda result, pending: log.manager.restore(result, pending, group_id, topic, offsets)))


def test_the_offsets_of_a_deleted_topic_are_exactly_its_committed_ones() -> None:
    log = OffsetLog()
    log.commit({"t": {0: (1, 2, "note")}, "tt": {0: 1}})
    log.commit({"t": {3: 4}, "u": {0: 5}}, "other")
    log.commit_in_transaction(7, {"t": {1: 2}})
    found = {
        (each.group_id, each.topic, each.partition): each.committed
        for each in (encoded.decoded() for encoded in log.manager.of_topics({*map(encode_topic, ("t", "u"))}))
    }
    assert found == {
        ("g", "t", 0): CommittedOffset(1, 2, "note", 1_000),
        ("other", "t", 3): CommittedOffset(4, -1, "", 1_000),
        ("other", "u", 0): CommittedOffset(5, -1, "", 1_000),
    }
    assert log.manager.of_topics(set()) == []


def test_restored_offsets_recreate_a_group_and_have_the_current_time() -> None:
    log = OffsetLog()
    log.now_ms = 9_000
    assert restored(log, {0: CommittedOffset(5, 2, "note", 1_000, topic_id=b"i" * 16)}) == 1
    assert log.stored() == {("t", 0): CommittedOffset(5, 2, "note", 9_000, topic_id=b"i" * 16)}
    assert list(log.groups) == ["g"]


def test_only_missing_offsets_are_restored() -> None:
    log = OffsetLog()
    log.commit({"t": {0: 9}, "other": {1: 1}})
    log.commit_in_transaction(7, {"t": {1: 8}})
    kept = {index: CommittedOffset(5, -1, "", 1_000) for index in range(3)}
    assert restored(log, kept) == 1
    log.end(7, commit=True)
    assert log.fetch() == {("t", 0): 9, ("t", 1): 8, ("t", 2): 5, ("other", 1): 1}


def test_offsets_are_not_restored_to_an_active_group() -> None:
    log = OffsetLog()
    log.groups["g"] = FakeGroup("g", is_empty=False)
    assert restored(log, {0: CommittedOffset(5, -1, "", 1_000)}) == 0
    assert log.last.records == []


# Expiry


def look(log: OffsetLog) -> None:
    """Run the expiry timer as often as one round takes."""
    log.do(lambda result, pending: log.manager.expire(result, NEXT_ROUND))
    while log.last.timers[-1].delay_ms == 0:
        log.do(lambda result, pending: log.manager.expire(result, log.last.timers[-1].key))


def test_offsets_are_checked_for_expiry_periodically() -> None:
    log = OffsetLog(offsets_retention_check_interval_ms="60000")
    log.do(lambda result, pending: log.manager.on_loaded(result))
    assert log.last.timers == [(NEXT_ROUND, 60_000)]
    look(log)
    assert log.last.timers == [(NEXT_ROUND, 60_000)]


def test_offsets_of_a_simple_group_expire_individually_and_the_group_with_the_last() -> None:
    log = OffsetLog()
    log.commit({"t": {0: 1}})
    log.now_ms += DAY_MS
    log.commit({"t": {1: 1}})
    log.now_ms += RETENTION_MS - DAY_MS - 1
    look(log)
    assert log.fetch() == {("t", 0): 1, ("t", 1): 1}
    log.now_ms += 1
    look(log)
    assert log.fetch() == {("t", 1): 1}
    assert log.groups["g"].tombstones_count == 0
    log.now_ms += DAY_MS
    look(log)
    assert log.fetch() == {}
    assert log.groups["g"].tombstones_count == 1


def test_offsets_of_an_empty_group_age_since_it_became_empty() -> None:
    log = OffsetLog()
    log.commit({"t": {0: 1}})
    log.groups["g"].unused_since_ms = log.now_ms + DAY_MS
    log.now_ms += RETENTION_MS
    look(log)
    assert log.fetch() == {("t", 0): 1}
    log.now_ms += DAY_MS
    look(log)
    assert log.fetch() == {}


def test_subscribed_and_pending_offsets_do_not_expire() -> None:
    log = OffsetLog()
    log.commit({"t": {0: 1}, "u": {0: 1, 1: 1}})
    log.groups["g"].subscribed = frozenset({"t"})
    log.commit_in_transaction(7, {"u": {0: 2}})
    log.now_ms += RETENTION_MS
    look(log)
    assert log.fetch() == {("t", 0): 1, ("u", 0): 1}


def test_nothing_expires_while_the_group_forbids_it() -> None:
    log = OffsetLog()
    log.commit({"t": {0: 1}})
    log.groups["g"].offsets_may_expire = False
    log.now_ms += RETENTION_MS
    look(log)
    assert log.fetch() == {("t", 0): 1}
    assert log.groups["g"].tombstones_count == 0


def test_the_clients_retention_takes_precedence() -> None:
    log = OffsetLog()
    log.commit({"t": {0: 1}}, version=2, retention_time_ms=500)
    log.now_ms += 499
    look(log)
    assert log.fetch() == {("t", 0): 1}
    log.now_ms += 1
    look(log)
    assert log.fetch() == {}


def test_a_group_with_members_or_an_open_transaction_is_kept_without_offsets() -> None:
    log = OffsetLog()
    log.groups["busy"] = FakeGroup("busy", is_empty=False)
    log.groups["empty"] = FakeGroup("empty")
    log.commit_in_transaction(7, {"t": {0: 2}})
    look(log)
    assert {group.group_id: group.tombstones_count for group in log.groups.values()} == {
        "busy": 0,
        "empty": 1,
        "g": 0,
    }


def test_many_groups_are_checked_in_chunks() -> None:
    log = OffsetLog()
    for number in range(3):
        log.commit({"t": dict.fromkeys(range(LOOKED_AT_OFFSETS_MAX), 1)}, f"g{number}")
    log.now_ms += RETENTION_MS
    log.do(lambda result, pending: log.manager.expire(result, NEXT_ROUND))
    assert len(log.last.records) == LOOKED_AT_OFFSETS_MAX
    assert not log.last.is_atomic
    look(log)
    assert log.manager.statistics()["offsets_count"] == 0


def test_statistics_count_offsets() -> None:
    log = OffsetLog()
    log.commit({"t": {0: 1, 1: 1}})
    log.commit_in_transaction(7, {"t": {0: 2}})
    assert log.manager.statistics() == {"offsets_count": 2, "pending_offsets_count": 1}
    assert log.manager.table.is_open("g", encode_partition("t", 0))


def test_commits_deletions_and_expirations_are_counted_and_reloads_are_not() -> None:
    log = OffsetLog(offset_metadata_max_bytes="1")
    log.commit({"t": {0: 1, 1: 1}})
    log.commit({"t": {0: 1, 1: (1, -1, "too long")}})
    log.commit_in_transaction(7, {"t": {0: 2}})
    log.end(7, commit=True)
    log.reload()
    delete(log, 1, 5)
    assert log.counts == GroupCounts(offset_commits_count=4, offset_deletions_count=1)
    log.now_ms += RETENTION_MS
    look(log)
    assert log.counts.offset_expirations_count == 1
