from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from barnabas.metadata.broker_lifecycle import decide_elections
from barnabas.metadata.brokers import decide_register
from barnabas.metadata.decision import Decision
from barnabas.metadata.elections import decide_elect_preferred
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.metadata.topic_rotation import TopicRotation
from barnabas.metadata.topics import PartitionRegistration
from support.images import broker, cluster, manually_assigned, replayed, with_state

COUNT = 40
TOPICS = [manually_assigned(f"t{number}", [1, 2]) for number in range(COUNT)]
IMAGE = cluster(2, *TOPICS)


def fenced() -> MetadataImage:
    return replayed(IMAGE, decide_register(IMAGE.brokers, broker(1, fenced=True)))


def led_by_others() -> MetadataImage:
    image = IMAGE
    for topic in IMAGE.topics.values():
        image = with_state(image, topic, 0, PartitionRegistration(2, 1, (1, 2)))
    return image


@pytest.mark.parametrize(
    ("image", "decide", "leader"),
    [(fenced(), decide_elections, 2), (led_by_others(), decide_elect_preferred, 1)],
)
def test_elections_in_many_commits_look_at_each_partition_a_few_times(
    image: MetadataImage,
    decide: Callable[..., Decision[int]],
    leader: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks_count, look_at = 0, MetadataImage.partition

    def counted(*arguments: Any) -> PartitionRegistration:
        nonlocal looks_count
        looks_count += 1
        return look_at(*arguments)

    elections = partial(decide, limit=2, rotation=TopicRotation())
    with monkeypatch.context() as patched:
        patched.setattr(MetadataImage, "partition", counted)
        while (decision := elections(image)).response:
            image = replayed(image, decision)
    assert {image.partition(topic, 0).leader for topic in image.topics.values()} == {leader}
    assert looks_count < 5 * COUNT  # beginning with the first topic each time, 20 * COUNT


def test_a_rotation_whose_topic_is_deleted_looks_at_all_others() -> None:
    rotation = TopicRotation()
    rotation.continue_in(IMAGE.topics["t7"])
    assert next(iter(rotation.topics(IMAGE))).name == "t7"
    image = replayed(IMAGE, decide_delete(IMAGE, [TopicToDelete("t7")]))
    assert sorted(topic.name for topic in rotation.topics(image)) == sorted(image.topics)
