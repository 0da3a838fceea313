from dataclasses import replace

import pytest

from barnabas.api.cluster import topic_descriptions
from barnabas.api.cluster.topic_descriptions import TopicDescriptions
from barnabas.metadata.brokers import BROKERS
from barnabas.metadata.decision import Decision
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration
from barnabas.wire.errors import ErrorCode
from support.images import cluster, manually_assigned, new_topic, replayed, with_state


def test_a_topic_is_described_once_per_image() -> None:
    descriptions, image = TopicDescriptions(), cluster(2, manually_assigned("t", [1, 2], [2, 1]))
    topic = image.topics["t"]
    first, second = (descriptions.describe(image, topic) for _ in range(2))
    assert first.partitions is second.partitions
    assert first is not second  # each response has its own authorized operations
    assert [(each.leader_id, each.replica_nodes) for each in first.partitions] == [(1, [1, 2]), (2, [2, 1])]


def test_a_changed_image_is_described_again() -> None:
    descriptions, image = TopicDescriptions(), cluster(2, manually_assigned("t", [1, 2]))
    topic = image.topics["t"]
    assert descriptions.describe(image, topic).partitions[0].isr_nodes == [1, 2]
    changed = with_state(image, topic, 0, PartitionRegistration(2, 1, (2,), 1, (1, 2)))
    assert descriptions.describe(changed, topic).partitions[0].isr_nodes == [2]
    assert descriptions.describe(changed, topic).partitions[0].leader_id == 2


def test_the_number_of_cached_topics_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_descriptions, "DESCRIBED_COUNT_MAX", 2)
    descriptions, image = TopicDescriptions(), cluster(1, *map(new_topic, "abc"))
    before = [descriptions.describe(image, image.topics[name]).partitions for name in "abc"]
    after = [descriptions.describe(image, image.topics[name]).partitions for name in "cba"]
    assert [old is new for old, new in zip(reversed(before), after, strict=True)] == [True, False, False]


def test_a_leader_that_is_fenced_and_not_replaced_yet_is_not_named() -> None:
    image = cluster(2, manually_assigned("t", [1, 2], [2, 1]))
    fenced = replace(image.brokers["1"], fenced=True)
    image = replayed(image, Decision(None, (BROKERS.put("1", fenced),)))
    first, second = TopicDescriptions().describe(image, image.topics["t"]).partitions
    assert (first.leader_id, first.error_code) == (NO_LEADER, ErrorCode.LEADER_NOT_AVAILABLE)
    assert (second.leader_id, second.error_code) == (2, ErrorCode.NONE)
    assert first.offline_replicas == second.offline_replicas == [1]
