"""Metadata that is older than the logs."""

from barnabas.base.ids import ZERO_UUID, TopicIdPartition
from barnabas.metadata.brokers import LOST_LOG_DIR
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.producer_ids import SKIPPED_COUNT, decide_allocate_block
from barnabas.metadata.restored_backup import (
    EPOCHS_AHEAD_MAX,
    EPOCHS_SKIPPED,
    decide_add_lost_log_dirs,
    decide_continue_epochs,
    decide_continue_producer_ids,
    is_newer,
    newer_epochs,
)
from barnabas.metadata.topic_recovery import FoundLog
from support.images import cluster, new_topic, replayed

IMAGE = cluster(2, new_topic("t", 2, 2))
TOPIC = IMAGE.topics["t"]
PARTITIONS = [TopicIdPartition(TOPIC.topic_id, index) for index in range(2)]


def log(partition: int, leader_epoch: int = -1, producer_id: int = -1) -> FoundLog:
    return FoundLog("t", TOPIC.topic_id, partition, producer_id, leader_epoch)


def epochs(image: MetadataImage) -> list[int]:
    return [image.partition(image.topics["t"], index).leader_epoch for index in range(2)]


def test_a_log_is_newer_if_its_last_leader_epoch_is_later() -> None:
    assert is_newer(IMAGE, TOPIC.topic_id, 0, 1)
    assert not is_newer(IMAGE, TOPIC.topic_id, 0, 0)
    assert not is_newer(IMAGE, TOPIC.topic_id, 2, 1), "a partition that was added later"
    assert not is_newer(IMAGE, ZERO_UUID, 0, 1), "a topic that was created later"


def test_a_damaged_leader_epoch_is_not_continued() -> None:
    damaged = log(0, EPOCHS_AHEAD_MAX + 1)
    assert not is_newer(IMAGE, TOPIC.topic_id, 0, damaged.leader_epoch)
    assert newer_epochs(IMAGE, [damaged, log(1, 3)]) == {PARTITIONS[1]: 3}


def test_leader_epochs_continue_far_after_those_in_the_logs_and_in_the_metadata() -> None:
    after = replayed(IMAGE, decide_continue_epochs(IMAGE, PARTITIONS, newer_epochs(IMAGE, [log(0, 7)])))
    assert epochs(after) == [7 + EPOCHS_SKIPPED, EPOCHS_SKIPPED]
    for index in range(2):
        before, state = IMAGE.partition(TOPIC, index), after.partition(TOPIC, index)
        assert (state.leader, state.isr, state.replicas) == (before.leader, before.isr, before.replicas)
        assert state.partition_epoch == before.partition_epoch + 1


def test_partitions_that_are_gone_meanwhile_are_left_out() -> None:
    gone = [TopicIdPartition(TOPIC.topic_id, 2), TopicIdPartition(ZERO_UUID, 0)]
    assert decide_continue_epochs(IMAGE, gone, {}).changes == ()


def test_producer_ids_continue_far_after_the_largest_in_the_logs() -> None:
    after = replayed(IMAGE, decide_continue_producer_ids(IMAGE, [log(0, producer_id=1_500), log(1)]))
    assert decide_allocate_block(after.producer_ids).response.start == 1_501 + SKIPPED_COUNT


def test_producer_ids_continue_far_after_those_of_the_metadata_if_the_logs_have_smaller_ones() -> None:
    before = replayed(IMAGE, decide_allocate_block(IMAGE.producer_ids))
    after = replayed(before, decide_continue_producer_ids(before, [log(0, producer_id=7)]))
    last = decide_allocate_block(IMAGE.producer_ids).response.stop
    assert decide_allocate_block(after.producer_ids).response.start == last + SKIPPED_COUNT


def test_no_broker_has_all_log_directories_that_it_had_before_the_restoration() -> None:
    after = replayed(IMAGE, decide_add_lost_log_dirs(IMAGE))
    for key, broker in IMAGE.brokers.items():
        assert after.brokers[key].log_dirs == (*broker.log_dirs, LOST_LOG_DIR)
    assert decide_add_lost_log_dirs(after).changes == ()
