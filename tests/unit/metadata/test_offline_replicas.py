"""Replicas that have no usable log: others lead their partitions."""

import pytest

from barnabas.base.ids import TopicIdPartition
from barnabas.metadata.election_rules import ElectionRules
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.isr import IsrChange, decide_alter_isr
from barnabas.metadata.offline_replicas import decide_report_lost, decide_report_offline
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration
from support.images import cluster, manually_assigned, replayed, with_elr

IMAGE = cluster(3, manually_assigned("t", [1, 2], [1, 3], [2, 3]), manually_assigned("alone", [1]))
TOPIC, ALONE = IMAGE.topics["t"], IMAGE.topics["alone"]
PARTITIONS = [(TOPIC, 0), (TOPIC, 1), (TOPIC, 2), (ALONE, 0)]
ALL = frozenset(TopicIdPartition(topic.topic_id, index) for topic, index in PARTITIONS)


def states(image: MetadataImage) -> list[PartitionRegistration]:
    return [image.partition(topic, index) for topic, index in PARTITIONS]


def leaders(image: MetadataImage) -> list[int]:
    return [state.leader for state in states(image)]


def reported(image: MetadataImage, broker_id: int = 1) -> MetadataImage:
    return replayed(image, decide_report_offline(image, broker_id, ALL))


@pytest.mark.parametrize("image", [IMAGE, with_elr(IMAGE)], ids=["without ELR", "with ELR"])
def test_replicas_in_a_failed_directory_lead_nothing_and_are_not_in_sync(image: MetadataImage) -> None:
    after = reported(image)
    assert leaders(after) == [2, 3, 2, NO_LEADER]
    assert [state.isr for state in states(after)][:3] == [(2,), (3,), (2, 3)]
    assert [state.offline for state in states(after)] == [(1,), (1,), (), (1,)]
    assert decide_report_offline(after, 1, ALL).response == 0


def test_the_only_replica_leads_again_only_if_it_is_back() -> None:
    last = states(reported(with_elr(IMAGE)))[3]
    assert (last.isr, last.elr, last.last_known_elr) == ((), (1,), (1,))
    assert states(reported(IMAGE))[3].isr == (1,)


def test_reports_come_in_limited_commits() -> None:
    assert decide_report_offline(IMAGE, 1, ALL, limit=2).response == 2


def test_partitions_that_do_not_exist_are_ignored() -> None:
    unknown = [TopicIdPartition(bytes(16), 0), TopicIdPartition(TOPIC.topic_id, 9)]
    assert decide_report_offline(IMAGE, 1, unknown).response == 0
    assert decide_report_lost(IMAGE, 1, unknown).changes == ()


def test_an_offline_follower_does_not_join_the_isr() -> None:
    image = reported(IMAGE)
    state = image.partition(TOPIC, 0)
    epochs = {1: image.brokers["1"].epoch}
    change = IsrChange(TOPIC.topic_id, 0, state.leader_epoch, state.partition_epoch, (2, 1), epochs)
    assert decide_alter_isr(image, 2, [change]).response == 0


def test_a_replica_without_a_log_is_not_in_sync_nor_eligible() -> None:
    rules = ElectionRules(min_isr=lambda topic: 2)
    for image in (IMAGE, with_elr(IMAGE)):
        after = replayed(image, decide_report_lost(image, 1, ALL, rules))
        assert leaders(after) == [2, 3, 2, NO_LEADER]
        assert [state.isr for state in states(after)] == [(2,), (3,), (2, 3), ()]
        assert [(state.elr, state.last_known_elr, state.offline) for state in states(after)] == [
            ((), (), ())
        ] * 4
        assert decide_report_lost(after, 1, ALL, rules).changes == ()
