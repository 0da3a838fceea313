from collections.abc import Iterable

from barnabas.config.broker_config import BrokerConfig
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.producer_ids import BLOCK_COUNT, SKIPPED_COUNT, decide_allocate_block
from barnabas.metadata.store import NEVER
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.metadata.topic_recovery import FoundLog, decide_recover_topics
from barnabas.metadata.topics import TopicImage
from support.images import cluster, new_topic, replayed

A, B = b"a" * 16, b"b" * 16


def recover(image: MetadataImage, broker_id: int, found: Iterable[FoundLog]) -> Decision[list[str]]:
    return decide_recover_topics(image, broker_id, found, BrokerConfig({}))


def test_logs_become_topics_on_this_broker_only() -> None:
    found = [FoundLog("t", A, 1), FoundLog("u", B, 0), FoundLog("t", A, 0)]
    decision = recover(cluster(1), 7, found)
    assert decision.response == ["t", "u"]
    assert decision.reads == {"topics/t": NEVER, "topics/u": NEVER, "producer_ids/next": NEVER}
    after = replayed(cluster(1), decision)
    assert dict(after.topics) == {"t": TopicImage("t", A, ((7,), (7,))), "u": TopicImage("u", B, ((7,),))}


def test_a_topic_with_missing_partitions_is_skipped() -> None:
    found = [FoundLog("gap", A, 0), FoundLog("gap", A, 2), FoundLog("late", B, 1)]
    assert recover(cluster(1), 1, found).response == []


def test_a_topic_whose_logs_have_different_ids_is_skipped() -> None:
    assert recover(cluster(1), 1, [FoundLog("t", A, 0), FoundLog("t", B, 0)]).response == []


def test_topics_of_coordinators_are_recovered_with_their_required_configs() -> None:
    found = [FoundLog("__consumer_offsets", A, index) for index in range(3)]
    found += [FoundLog("__transaction_state", B, 0), FoundLog("__share_group_state", b"c" * 16, 0)]
    decision = recover(cluster(1), 1, found)
    assert decision.response == ["__consumer_offsets", "__transaction_state"]
    after = replayed(cluster(1), decision)
    assert after.topics["__consumer_offsets"].partition_count == 3
    assert {after.topic_configs[name]["cleanup.policy"] for name in decision.response} == {"compact"}


def test_leader_epochs_continue_after_those_in_the_logs() -> None:
    decision = recover(cluster(1), 7, [FoundLog("t", A, 0, leader_epoch=4), FoundLog("t", A, 1)])
    after = replayed(cluster(1), decision)
    states = [after.partition(after.topics["t"], index) for index in (0, 1)]
    assert [(state.leader, state.leader_epoch, state.isr) for state in states] == [(7, 5, (7,)), (7, 0, (7,))]


def test_nothing_is_recovered_if_the_cluster_has_or_had_topics() -> None:
    has = cluster(1, new_topic("mine"))
    had = replayed(has, decide_delete(has, [TopicToDelete("mine")]))
    for image in (has, had):
        assert recover(image, 1, [FoundLog("t", A, 0)]).response == []


def test_an_empty_disk_changes_nothing() -> None:
    decision = recover(MetadataImage(), 1, [])
    assert (decision.response, decision.changes) == ([], ())


def test_producer_ids_continue_after_those_in_the_logs() -> None:
    found = [FoundLog("t", A, 0, 41), FoundLog("u", B, 0, 7), FoundLog("u", B, 1)]
    after = replayed(cluster(1), recover(cluster(1), 1, found))
    assert decide_allocate_block(after.producer_ids).response.start == 42 + SKIPPED_COUNT
    incomplete = recover(cluster(1), 1, [FoundLog("t", A, 1, 41)])
    after = replayed(cluster(1), incomplete)
    assert decide_allocate_block(after.producer_ids).response.start == 42 + SKIPPED_COUNT


def test_producer_ids_never_decrease() -> None:
    later = replayed(cluster(1), decide_allocate_block(cluster(1).producer_ids))
    after = replayed(later, recover(later, 1, [FoundLog("t", A, 0, 41)]))
    assert decide_allocate_block(after.producer_ids).response.start == BLOCK_COUNT + SKIPPED_COUNT
