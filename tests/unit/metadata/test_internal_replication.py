from barnabas.base.topic_names import GROUP_TOPIC
from barnabas.metadata.brokers import decide_register
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.internal_replication import decide_replicate_internal_topics
from support.images import broker, cluster, manually_assigned, replayed

ALONE = cluster(1, manually_assigned(GROUP_TOPIC, [1], [1], [1]), manually_assigned("other", [1]))


def joined(image: MetadataImage, *broker_ids: int) -> MetadataImage:
    for broker_id in broker_ids:
        image = replayed(image, decide_register(image.brokers, broker(broker_id)))
    return image


def three(_topic: str, brokers_count: int) -> int:
    return min(3, brokers_count)


def test_internal_topics_get_replicas_when_brokers_join_and_others_do_not() -> None:
    image = joined(ALONE, 2, 3)
    decision = decide_replicate_internal_topics(image, three)
    assert decision.response == 3
    image = replayed(image, decision)
    topic = image.topics[GROUP_TOPIC]
    states = [image.partition(topic, index) for index in range(3)]
    assert [state.replicas for state in states] == [(1, 2, 3), (1, 3, 2), (1, 2, 3)]
    assert all((state.adding, state.isr, state.leader) == ((2, 3), (1,), 1) for state in states)
    assert image.partition(image.topics["other"], 0).replicas == (1,)
    assert decide_replicate_internal_topics(image, three).changes == ()


def test_a_configured_replication_factor_is_respected() -> None:
    assert decide_replicate_internal_topics(joined(ALONE, 2, 3), lambda *_: 1).changes == ()
    two = decide_replicate_internal_topics(joined(ALONE, 2, 3), lambda *_: 2)
    image = replayed(joined(ALONE, 2, 3), two)
    topic = image.topics[GROUP_TOPIC]
    assert [image.partition(topic, index).replicas for index in range(3)] == [(1, 2), (1, 3), (1, 2)]


def test_a_broker_that_is_alone_changes_nothing() -> None:
    assert decide_replicate_internal_topics(ALONE, three).changes == ()
