import pytest

from barnabas.metadata.brokers import decide_register
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete, decide_remove_deleted
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration
from barnabas.metadata.unregistration import decide_unregister
from barnabas.wire.errors import ErrorCode, KafkaError
from support.images import broker, cluster, manually_assigned, replayed


def fenced(image: MetadataImage, broker_id: int) -> MetadataImage:
    return replayed(image, decide_register(image.brokers, broker(broker_id, fenced=True)))


IMAGE = fenced(
    cluster(3, manually_assigned("t", [1, 2], [2, 3], [1, 3]), manually_assigned("lonely", [2])), 2
)


def states(image: MetadataImage, topic: str = "t") -> list[PartitionRegistration]:
    found = image.topics[topic]
    return [image.partition(found, index) for index in range(found.partition_count)]


def test_a_dead_broker_is_unregistered_and_leads_nothing() -> None:
    after = replayed(IMAGE, decide_unregister(IMAGE, 2))
    assert set(after.brokers) == {"1", "3"}
    first, second, third = states(after)
    assert (first.leader, first.leader_epoch, first.isr, first.replicas) == (1, 0, (1,), (1, 2))
    assert (second.leader, second.leader_epoch, second.isr) == (3, 1, (3,))
    assert third == states(IMAGE)[2]


def test_a_partition_without_other_replicas_stays_without_a_leader() -> None:
    [state] = states(replayed(IMAGE, decide_unregister(IMAGE, 2)), "lonely")
    assert (state.leader, state.isr) == (NO_LEADER, (2,))


def test_its_logs_of_deleted_topics_are_not_waited_for() -> None:
    image = replayed(IMAGE, decide_delete(IMAGE, [TopicToDelete("t"), TopicToDelete("lonely")]))
    for broker_id in (1, 3):
        rows = [topic.topic_id for topic in image.deleted_topics.values()]
        image = replayed(image, decide_remove_deleted(image, rows, broker_id))
    assert [topic.brokers for topic in image.deleted_topics.values()] == [(2,), (2,)]
    assert not replayed(image, decide_unregister(image, 2)).deleted_topics


def test_an_active_broker_is_not_unregistered() -> None:
    with pytest.raises(KafkaError, match="Broker 1 is up: stop it first") as caught:
        decide_unregister(IMAGE, 1)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("broker_id", [9, -1, 0])
def test_an_unknown_broker_is_an_error(broker_id: int) -> None:
    with pytest.raises(KafkaError, match=f"Broker {broker_id} ") as caught:
        decide_unregister(IMAGE, broker_id)
    assert caught.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_broker_that_returns_meanwhile_is_kept() -> None:
    decision = decide_unregister(IMAGE, 2)
    assert decision.reads["brokers/2"] == IMAGE.brokers.revision("2")
    back = replayed(IMAGE, decide_register(IMAGE.brokers, broker(2)))
    assert back.brokers.revision("2") != decision.reads["brokers/2"]
