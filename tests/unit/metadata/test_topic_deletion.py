import pytest

from barnabas.base.ids import ZERO_UUID, uuid_to_text
from barnabas.metadata.brokers import BROKERS
from barnabas.metadata.decision import Decision
from barnabas.metadata.topic_deletion import Deleted, TopicToDelete, decide_delete, decide_remove_deleted
from barnabas.metadata.topics import DeletedTopic, PartitionRegistration
from barnabas.wire.errors import ErrorCode
from support.images import cluster, manually_assigned, new_topic, replayed, with_state, with_topics

IMAGE = cluster(1, new_topic("a", 2, configs={"retention.ms": "5"}), new_topic("b"))
A, B = IMAGE.topics["a"], IMAGE.topics["b"]


@pytest.mark.parametrize("asked", [TopicToDelete("a"), TopicToDelete(None, A.topic_id)])
def test_a_topic_is_deleted_by_name_or_by_id(asked: TopicToDelete) -> None:
    decision = decide_delete(IMAGE, [asked])
    assert decision.response == [Deleted("a", A.topic_id)]
    assert decision.reads == {
        "topics/a": IMAGE.topics.revision("a"),
        "topic_configs/a": IMAGE.topic_configs.revision("a"),
        f"partition_states/{A.topic_id.hex()}/": IMAGE.revision,
    }
    after = replayed(IMAGE, decision)
    assert set(after.topics) == {"b"}
    assert after.topic_by_id(A.topic_id) is None
    assert dict(after.deleted_topics) == {A.topic_id.hex(): DeletedTopic("a", A.topic_id, (1,))}


def test_deleting_a_topic_deletes_its_configs_and_states() -> None:
    image = with_state(IMAGE, A, 1, PartitionRegistration(1, 4, (1,)))
    image = with_state(image, B, 0, PartitionRegistration(1, 2, (1,)))
    after = replayed(image, decide_delete(image, [TopicToDelete("a")]))
    assert dict(after.topic_configs) == {}
    assert set(after.partition_states) == {f"{B.topic_id.hex()}/0"}


def test_a_recreated_topic_has_a_new_state() -> None:
    image = with_state(IMAGE, A, 0, PartitionRegistration(-1, 9, ()))
    image = replayed(image, decide_delete(image, [TopicToDelete("a")]))
    image = with_topics(image, new_topic("a"))
    assert image.partition(image.topics["a"], 0) == PartitionRegistration(1, 0, (1,), replicas=(1,))


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (TopicToDelete("gone"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "'gone'"),
        (TopicToDelete(""), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "''"),
        (TopicToDelete(None, b"\x01" * 16), ErrorCode.UNKNOWN_TOPIC_ID, uuid_to_text(b"\x01" * 16)),
        (TopicToDelete(None, ZERO_UUID), ErrorCode.INVALID_REQUEST, "neither a topic name nor a topic id"),
        (TopicToDelete("a", A.topic_id), ErrorCode.INVALID_REQUEST, "both a topic name and a topic id"),
    ],
)
def test_an_invalid_deletion_is_rejected_individually(
    asked: TopicToDelete, code: ErrorCode, message: str
) -> None:
    decision = decide_delete(IMAGE, [asked, TopicToDelete("b")])
    refused, deleted = decision.response
    assert (refused.name, refused.topic_id) == (asked.name, asked.topic_id)
    assert refused.error is not None
    assert refused.error.code is code
    assert message in refused.error.message
    assert deleted == Deleted("b", B.topic_id)
    assert set(replayed(IMAGE, decision).topics) == {"a"}


def test_a_name_that_collided_with_a_deleted_topic_can_be_used() -> None:
    image = cluster(1, new_topic("a.b"))
    image = replayed(image, decide_delete(image, [TopicToDelete("a.b")]))
    assert set(with_topics(image, new_topic("a_b")).topics) == {"a_b"}


def test_an_empty_request_changes_nothing() -> None:
    decision = decide_delete(IMAGE, [])
    assert (decision.response, decision.changes, decision.reads) == ([], (), {})


def test_expired_topics_leave_no_state() -> None:
    image = replayed(IMAGE, decide_delete(IMAGE, [TopicToDelete("a"), TopicToDelete("b")]))
    after = replayed(image, decide_remove_deleted(image, [A.topic_id], 1))
    assert set(after.deleted_topics) == {B.topic_id.hex()}
    assert decide_remove_deleted(after, [A.topic_id], 1).changes == ()


def test_deleting_everything_leaves_an_empty_cluster() -> None:
    image = replayed(IMAGE, decide_delete(IMAGE, [TopicToDelete("a"), TopicToDelete("b")]))
    image = replayed(image, decide_remove_deleted(image, [A.topic_id, B.topic_id], 1))
    empty = cluster(1)
    assert set(image.tables) == set(empty.tables)
    assert dict(image.brokers) == dict(empty.brokers)
    assert not image.topic_names


@pytest.mark.parametrize(
    ("asked", "name", "topic_id"),
    [
        ([TopicToDelete("a"), TopicToDelete("a")], "a", ZERO_UUID),
        ([TopicToDelete(None, A.topic_id)] * 3, None, A.topic_id),
        ([TopicToDelete(None, A.topic_id), TopicToDelete("a")], "a", A.topic_id),
        ([TopicToDelete("gone"), TopicToDelete("gone")], "gone", ZERO_UUID),
    ],
)
def test_a_topic_requested_more_than_once_is_rejected_once_and_kept(
    asked: list[TopicToDelete], name: str | None, topic_id: bytes
) -> None:
    decision = decide_delete(IMAGE, [*asked, TopicToDelete("b")])
    refused, deleted = decision.response
    assert (refused.name, refused.topic_id) == (name, topic_id)
    assert refused.error is not None
    assert refused.error.code is ErrorCode.INVALID_REQUEST
    assert "more than once" in refused.error.message
    assert deleted == Deleted("b", B.topic_id)
    assert set(replayed(IMAGE, decision).topics) == {"a"}


def test_requests_for_missing_topics_have_their_own_errors() -> None:
    neither, both = TopicToDelete(), TopicToDelete("a", A.topic_id)
    outcomes = decide_delete(IMAGE, [neither, neither, both, both]).response
    assert [outcome.error and outcome.error.code for outcome in outcomes] == [ErrorCode.INVALID_REQUEST] * 4
    assert not any("more than once" in str(outcome.error) for outcome in outcomes)


def test_a_deleted_topic_is_removed_when_each_broker_with_replicas_has_removed_its_logs() -> None:
    image = cluster(3, manually_assigned("r", [1, 2], [2, 3]))
    topic_id = image.topics["r"].topic_id
    image = replayed(image, decide_delete(image, [TopicToDelete("r")]))
    assert image.deleted_topics[topic_id.hex()].brokers == (1, 2, 3)
    left = []
    for broker_id in (2, 2, 1, 3):
        image = replayed(image, decide_remove_deleted(image, [topic_id], broker_id))
        found = image.deleted_topics.get(topic_id.hex())
        left.append(found and found.brokers)
    assert left == [(1, 3), (1, 3), (3,), None]


def test_a_broker_that_is_not_registered_any_more_is_not_waited_for() -> None:
    image = cluster(2, manually_assigned("r", [1, 2]))
    topic_id = image.topics["r"].topic_id
    image = replayed(image, decide_delete(image, [TopicToDelete("r")]))
    image = replayed(image, Decision(None, (BROKERS.remove("2"),)))
    image = replayed(image, decide_remove_deleted(image, [topic_id], 1))
    assert topic_id.hex() not in image.deleted_topics
