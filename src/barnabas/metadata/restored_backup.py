"""A metadata store that is older than the logs, because a backup was restored.

Leader epochs and producer ids continue after those in the logs. Otherwise two leaders would write different records in
one epoch, and a new producer with an old id would seem to repeat the batches of the old one.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from barnabas.base.ids import TopicIdPartition
from barnabas.metadata.brokers import BROKERS, LOST_LOG_DIR
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_change_builder import PartitionChange, partition_decision
from barnabas.metadata.producer_ids import decide_continue_after
from barnabas.metadata.topic_recovery import FoundLog

#: Other brokers may have later epochs in their logs than the one that continues them.
EPOCHS_SKIPPED = 1_000

#: No partition has had so many leaders since a backup: the epoch in the log is damaged, which no checksum covers.
EPOCHS_AHEAD_MAX = 1_000_000


def is_newer(image: MetadataImage, topic_id: bytes, partition: int, leader_epoch: int) -> bool:
    """Whether the last leader epoch in a log is later than the one that the metadata knows."""
    topic = image.topic_by_id(topic_id)
    if topic is None or partition >= topic.partition_count:
        return False
    return 0 < leader_epoch - image.partition(topic, partition).leader_epoch <= EPOCHS_AHEAD_MAX


def newer_epochs(image: MetadataImage, logs: Iterable[FoundLog]) -> dict[TopicIdPartition, int]:
    """Return the last leader epochs in the logs that are newer than the metadata."""
    return {
        TopicIdPartition(log.topic_id, log.partition): log.leader_epoch
        for log in logs
        if is_newer(image, log.topic_id, log.partition, log.leader_epoch)
    }


def decide_continue_epochs(
    image: MetadataImage, partitions: Collection[TopicIdPartition], newer: Mapping[TopicIdPartition, int]
) -> Decision[None]:
    """Begin a leader epoch in each partition that is later than all that have been.

    :param newer: Those in logs that are newer than the metadata.
    """
    changes = []
    for partition in partitions:
        topic = image.topic_by_id(partition.topic_id)
        if topic is None or partition.partition >= topic.partition_count:
            continue
        state = image.partition(topic, partition.partition)
        epoch = max(state.leader_epoch, newer.get(partition, -1)) + EPOCHS_SKIPPED
        after = replace(state, leader_epoch=epoch, partition_epoch=state.partition_epoch + 1)
        changes.append(PartitionChange(topic, partition.partition, after))
    return partition_decision(None, image, changes)


def decide_continue_producer_ids(image: MetadataImage, logs: Collection[FoundLog]) -> Decision[None]:
    """Allocate no producer ids that are in the logs, or may be in those of other brokers."""
    return decide_continue_after(image.producer_ids, max((log.producer_id for log in logs), default=-1))


def decide_add_lost_log_dirs(image: MetadataImage) -> Decision[None]:
    """Add to the registration of each broker a log directory that the broker does not have.

    At its next start, each broker then takes its replicas without a log for lost. Since the backup, they may have been
    moved, or their topics deleted: without a log they must not lead.
    """
    changed = {
        key: replace(broker, log_dirs=(*broker.log_dirs, LOST_LOG_DIR))
        for key, broker in image.brokers.items()
        if LOST_LOG_DIR not in broker.log_dirs
    }
    puts = tuple(BROKERS.put(key, broker) for key, broker in changed.items())
    return Decision(None, puts, {BROKERS.key(key): image.brokers.revision(key) for key in changed})
