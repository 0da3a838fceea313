"""Topics that are undeleted, or purged."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from barnabas.base.ids import ZERO_UUID, uuid_to_text
from barnabas.metadata.audit.changes import differences
from barnabas.metadata.broker_lifecycle import JoiningReplicas, decide_join, decide_note_unclean_stop
from barnabas.metadata.brokers import decide_register
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import Item
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration
from barnabas.metadata.trash import TrashEntry
from barnabas.metadata.undeletion import (
    TrashedTopicRequest,
    TrashSizes,
    decide_expire_trash,
    decide_purge,
    decide_undelete,
)
from barnabas.wire.coordinator_records.committed_offset import CommittedOffset
from barnabas.wire.errors import ErrorCode, KafkaError
from support.images import (
    broker,
    cluster,
    manually_assigned,
    new_topic,
    replayed,
    with_elr,
    with_state,
    with_topics,
)

NOW_MS = 1_700_000_000_000
ALICE = TrashEntry(NOW_MS, "User:alice")
MOVED = PartitionRegistration(1, 7, (1,), 9, (1,))


def with_orders() -> MetadataImage:
    """Return a cluster with topic orders, which has configs and changed partitions."""
    image = cluster(1, new_topic("or.ders", 2, configs={"retention.ms": "5"}))
    return with_state(image, image.topics["or.ders"], 1, MOVED)


def deleted(image: MetadataImage, deletion: TrashEntry = ALICE) -> MetadataImage:
    return replayed(image, decide_delete(image, [TopicToDelete("or.ders")], trash=deletion))


def refused(image: MetadataImage, requested: TrashedTopicRequest, new_name: str | None = None) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        decide_undelete(image, requested, new_name)
    return caught.value


def test_a_deleted_topic_is_in_the_trash_with_its_whole_state() -> None:
    image = with_orders()
    topic = image.topics["or.ders"]
    [trashed] = deleted(image).trashed_topics.values()
    assert (trashed.topic, trashed.configs, trashed.states) == (topic, {"retention.ms": "5"}, {1: MOVED})
    assert (trashed.deleted_ms, trashed.deleted_by) == (NOW_MS, "User:alice")
    assert not deleted(image).deleted_topics


def test_the_trash_round_trips_through_the_store() -> None:
    image = with_orders()
    decision = decide_delete(image, [TopicToDelete("or.ders")], trash=ALICE)
    items = [Item(change.key, change.value, 1) for change in decision.changes if change.value is not None]
    assert MetadataImage.load(1, items).trashed_topics.rows == deleted(image).trashed_topics.rows


def test_offsets_are_kept_except_those_of_a_former_topic_of_the_name() -> None:
    image = with_orders()
    topic_id = image.topics["or.ders"].topic_id
    by_id, by_name = CommittedOffset(5, 2, "note", 1, 7, topic_id), CommittedOffset(6, -1, "", 1)
    of_earlier = CommittedOffset(7, -1, "", 1, topic_id=b"e" * 16)
    offsets = {"g": {0: by_id, 1: of_earlier}, "h": {1: by_name}, "i": {0: of_earlier}}
    decision = decide_delete(
        image, [TopicToDelete("or.ders")], trash=replace(ALICE, offsets={"or.ders": offsets})
    )
    items = [Item(change.key, change.value, 1) for change in decision.changes if change.value is not None]
    for after in (replayed(image, decision), MetadataImage.load(1, items)):
        [trashed] = after.trashed_topics.values()
        assert {group: dict(each) for group, each in trashed.offsets.items()} == {
            "g": {0: by_id._replace(topic_id=ZERO_UUID)},
            "h": {1: by_name},
        }


def test_an_undeleted_topic_equals_the_deleted_one() -> None:
    before = with_orders()
    image = deleted(before)
    after = replayed(image, decide_undelete(image, TrashedTopicRequest("or.ders")))
    for record_type in ("topics", "topic_configs", "taken_names", "partition_states", "topic_names"):
        assert dict(getattr(after, record_type)) == dict(getattr(before, record_type)), record_type
    assert not after.trashed_topics


def test_a_topic_is_undeleted_under_another_name_with_its_id() -> None:
    before = with_orders()
    image = deleted(before)
    after = replayed(image, decide_undelete(image, TrashedTopicRequest("or.ders"), "other"))
    assert after.topics["other"].topic_id == before.topics["or.ders"].topic_id
    assert after.topic_configs["other"] == {"retention.ms": "5"}
    assert after.partition(after.topics["other"], 1) == MOVED
    assert "or.ders" not in after.topics


def test_replicas_that_may_have_been_restarted_meanwhile_begin_a_new_leader_epoch() -> None:
    image = deleted(cluster(3, manually_assigned("or.ders", [1, 2, 3], [3, 1, 2])))
    image = replayed(image, decide_register(image.brokers, broker(1, fenced=True)))
    after = replayed(image, decide_undelete(image, TrashedTopicRequest("or.ders")))
    states = [after.partition(after.topics["or.ders"], index) for index in range(2)]
    assert [(state.leader, state.leader_epoch, state.isr) for state in states] == [
        (2, 2, (2, 3)),
        (3, 1, (3, 2)),
    ]


@pytest.mark.parametrize(
    ("unclean", "in_sync"),
    [((), (1, 2, 3)), ((1,), (2, 3)), ((1, 2), (3,)), ((1, 2, 3), (3,))],
)
def test_replicas_that_may_have_lost_records_in_the_trash_are_not_in_sync_if_others_have_them(
    unclean: Sequence[int], in_sync: Sequence[int]
) -> None:
    image = deleted(cluster(3, manually_assigned("or.ders", [1, 2, 3])))
    for broker_id in (1, 2, 3):
        joining = JoiningReplicas(is_clean=broker_id not in unclean)
        image = replayed(image, decide_join(image, broker(broker_id), joining))
        image = replayed(image, decide_join(image, broker(broker_id), JoiningReplicas(is_clean=True)))
    after = replayed(image, decide_undelete(image, TrashedTopicRequest("or.ders")))
    state = after.partition(after.topics["or.ders"], 0)
    assert (state.isr, state.leader) == (in_sync, in_sync[0])


def test_an_unclean_stop_is_noted_before_the_broker_joins_and_once_for_topics_in_the_trash() -> None:
    image = cluster(3, manually_assigned("or.ders", [1, 2, 3]))
    assert not decide_note_unclean_stop(image, 1).response
    image = deleted(image)
    noted = decide_note_unclean_stop(image, 1)
    assert noted.response
    image = replayed(image, noted)
    assert not decide_note_unclean_stop(image, 1).changes
    after = replayed(image, decide_undelete(image, TrashedTopicRequest("or.ders")))
    assert after.partition(after.topics["or.ders"], 0).isr == (2, 3)


@pytest.mark.parametrize(
    ("unclean", "leader", "isr", "elr"), [((), 2, (2,), (3,)), ((2,), 3, (3,), ()), ((2, 3), 1, (1,), ())]
)
def test_eligible_leader_replicas_lead_an_undeleted_partition_without_in_sync_replicas(
    unclean: Sequence[int], leader: int, isr: Sequence[int], elr: Sequence[int]
) -> None:
    image = with_elr(cluster(3, manually_assigned("or.ders", [1, 2, 3])))
    topic = image.topics["or.ders"]
    without_isr = replace(
        image.partition(topic, 0), leader=NO_LEADER, isr=(), elr=(2, 3), last_known_elr=(1,)
    )
    image = deleted(with_state(image, topic, 0, without_isr))
    for broker_id in unclean:
        image = replayed(image, decide_join(image, broker(broker_id), JoiningReplicas(is_clean=False)))
    undeleted = decide_undelete(image, TrashedTopicRequest("or.ders"), min_isr_default=2)
    state = replayed(image, undeleted).partition(topic, 0)
    assert (state.leader, state.isr, state.elr) == (leader, isr, elr)


def test_a_broker_that_lost_records_before_the_deletion_is_in_sync_as_it_was_then() -> None:
    image = cluster(3, manually_assigned("or.ders", [1, 2, 3]))
    image = replayed(image, decide_join(image, broker(3), JoiningReplicas(is_clean=False)))
    topic = image.topics["or.ders"]
    image = deleted(with_state(image, topic, 0, replace(image.partition(topic, 0), isr=(1, 2, 3))))
    after = replayed(image, decide_undelete(image, TrashedTopicRequest("or.ders")))
    assert after.partition(after.topics["or.ders"], 0).isr == (1, 2, 3)


@pytest.mark.parametrize(
    ("name", "code"),
    [("or.ders", ErrorCode.TOPIC_ALREADY_EXISTS), ("or_ders", ErrorCode.INVALID_TOPIC_EXCEPTION)],
)
def test_an_existing_name_is_rejected(name: str, code: ErrorCode) -> None:
    image = with_topics(deleted(with_orders()), new_topic(name))
    assert refused(image, TrashedTopicRequest("or.ders")).code is code


def test_an_invalid_name_is_rejected() -> None:
    error = refused(deleted(with_orders()), TrashedTopicRequest("or.ders"), "no spaces")
    assert error.code is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("name", ["__consumer_offsets", "__barnabas_audit", "__cluster_metadata"])
def test_no_topic_is_undeleted_under_the_name_of_an_internal_topic(name: str) -> None:
    error = refused(deleted(with_orders()), TrashedTopicRequest("or.ders"), name)
    assert error.code is ErrorCode.INVALID_REQUEST
    assert name in error.message


def test_an_internal_topic_is_undeleted_under_its_own_name() -> None:
    before = cluster(1, new_topic("__consumer_offsets"))
    image = replayed(before, decide_delete(before, [TopicToDelete("__consumer_offsets")], trash=ALICE))
    after = replayed(image, decide_undelete(image, TrashedTopicRequest("__consumer_offsets")))
    assert dict(after.topics) == dict(before.topics)


def test_a_topic_that_is_not_in_the_trash_cannot_be_undeleted() -> None:
    image = deleted(with_orders())
    [trashed] = image.trashed_topics.values()
    assert refused(image, TrashedTopicRequest("other")).code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refused(image, TrashedTopicRequest("other", trashed.topic_id)).code is ErrorCode.UNKNOWN_TOPIC_ID
    assert refused(image, TrashedTopicRequest("or.ders", bytes(15) + b"1")).code is ErrorCode.UNKNOWN_TOPIC_ID


def twice_deleted() -> MetadataImage:
    image = deleted(with_orders())
    image = with_topics(image, new_topic("another"), new_topic("or.ders"))
    return deleted(image, TrashEntry(NOW_MS + 1, "User:bob"))


def test_the_id_selects_among_several_topics_of_one_name() -> None:
    image = twice_deleted()
    error = refused(image, TrashedTopicRequest("or.ders"))
    assert error.code is ErrorCode.INVALID_REQUEST
    for trashed in image.trashed_topics.values():
        assert uuid_to_text(trashed.topic_id) in error.message
        after = replayed(image, decide_undelete(image, TrashedTopicRequest("or.ders", trashed.topic_id)))
        assert after.topics["or.ders"] == trashed.topic


def test_the_partition_limit_applies_to_undeletion() -> None:
    def admit(count: int) -> None:
        raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, f"{count} are too many")

    with pytest.raises(KafkaError, match="2 are too many"):
        decide_undelete(deleted(with_orders()), TrashedTopicRequest("or.ders"), admit=admit)


def test_a_purged_topic_is_removed_and_others_are_kept() -> None:
    image = twice_deleted()
    first, second = sorted(image.trashed_topics.values(), key=lambda each: each.deleted_ms)
    decision = decide_purge(
        image, [TrashedTopicRequest("nope"), TrashedTopicRequest("or.ders", first.topic_id)]
    )
    unknown, purged = decision.response
    assert unknown.error is not None
    assert (purged.topic, purged.error) == (first.topic, None)
    after = replayed(image, decision)
    assert list(after.trashed_topics.values()) == [second]
    assert [each.topic_id for each in after.deleted_topics.values()] == [first.topic_id]


def test_a_name_purges_one_topic_and_none_if_it_is_ambiguous() -> None:
    image = twice_deleted()
    [refused] = decide_purge(image, [TrashedTopicRequest("or.ders")]).response
    assert refused.error is not None
    assert refused.error.code == ErrorCode.INVALID_REQUEST
    first = min(image.trashed_topics.values(), key=lambda each: each.deleted_ms)
    image = replayed(image, decide_purge(image, [TrashedTopicRequest("or.ders", first.topic_id)]))
    decision = decide_purge(image, [TrashedTopicRequest("or.ders")])
    assert [each.error for each in decision.response] == [None]
    assert not replayed(image, decision).trashed_topics


def test_topics_in_the_trash_expire() -> None:
    image = twice_deleted()
    assert not decide_expire_trash(image, NOW_MS).changes
    decision = decide_expire_trash(image, NOW_MS + 1)
    assert decision.response == 1
    assert [each.deleted_by for each in replayed(image, decision).trashed_topics.values()] == ["User:bob"]


@pytest.mark.parametrize(
    ("partitions_max", "kept"), [(3, ["User:alice", "User:bob"]), (2, ["User:bob"]), (0, [])]
)
def test_beyond_the_topic_limit_the_first_deleted_expire(partitions_max: int, kept: list[str]) -> None:
    image = twice_deleted()  # one of 2 partitions, then one of 1
    after = replayed(image, decide_expire_trash(image, 0, partitions_max=partitions_max))
    assert sorted(each.deleted_by for each in after.trashed_topics.values()) == kept
    assert len(after.deleted_topics) == 2 - len(kept)


@pytest.mark.parametrize(
    ("bytes_max", "sizes", "kept"),
    [
        (30, (10, 20), ["User:alice", "User:bob"]),
        (29, (10, 20), ["User:bob"]),
        (20, (10, 20), ["User:bob"]),
        (19, (10, 20), []),
        (19, (0, 20), ["User:alice"]),
        (0, (0, 0), ["User:alice", "User:bob"]),
        (0, (1, 1), []),
    ],
)
def test_beyond_the_byte_limit_the_first_deleted_expire(
    bytes_max: int, sizes: tuple[int, int], kept: list[str]
) -> None:
    image = twice_deleted()
    ids = [each.topic_id for each in sorted(image.trashed_topics.values(), key=lambda each: each.deleted_ms)]
    trash_sizes = TrashSizes(bytes_max, dict(zip(ids, sizes, strict=True)))
    after = replayed(image, decide_expire_trash(image, 0, trash_sizes))
    assert sorted(each.deleted_by for each in after.trashed_topics.values()) == kept


def test_deletion_and_undeletion_are_audited() -> None:
    image = with_orders()
    topic_id = uuid_to_text(image.topics["or.ders"].topic_id)

    def seen(of: MetadataImage, changes: object) -> list[tuple[object, object]]:
        found = differences(of, changes)  # type: ignore[arg-type]
        return [
            (each.before, each.after)
            for each in found
            if (each.resource, each.key) == ("topic/or.ders", "in the trash")
        ]

    assert seen(image, decide_delete(image, [TopicToDelete("or.ders")], trash=ALICE).changes) == [
        (None, topic_id)
    ]
    image = deleted(image)
    assert seen(image, decide_undelete(image, TrashedTopicRequest("or.ders")).changes) == [(topic_id, None)]
    assert seen(image, decide_purge(image, [TrashedTopicRequest("or.ders")]).changes) == [(topic_id, None)]
