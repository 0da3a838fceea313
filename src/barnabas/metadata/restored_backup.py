"""A metadata store that is older than the logs, because a backup was restored.

Leader epochs and producer ids continue after those in the logs. Otherwise two leaders would write different records in
one epoch, and a new producer with an old id would seem to repeat the batches of the old one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_change_builder import PartitionChange, partition_decision
from barnabas.metadata.producer_ids import decide_continue_after
from barnabas.metadata.topic_recovery import FoundLog

#: Another broker may have later epochs than this one.
EPOCHS_SKIPPED = 1_000


def is_newer(image: MetadataImage, topic_id: bytes, partition: int, leader_epoch: int) -> bool:
    """Whether the last leader epoch in a log is later than the one that the metadata knows."""
    topic = image.topic_by_id(topic_id)
    if topic is None or partition >= topic.partition_count:
        return False
    return leader_epoch > image.partition(topic, partition).leader_epoch


def decide_continue_epochs(image: MetadataImage, logs: Iterable[FoundLog]) -> Decision[None]:
    """Begin a leader epoch in each partition that is later than all that have been."""
    changes = []
    for log in logs:
        topic = image.topic_by_id(log.topic_id)
        if topic is None or log.partition >= topic.partition_count:
            continue
        state = image.partition(topic, log.partition)
        epoch = max(state.leader_epoch, log.leader_epoch) + EPOCHS_SKIPPED
        after = replace(state, leader_epoch=epoch, partition_epoch=state.partition_epoch + 1)
        changes.append(PartitionChange(topic, log.partition, after))
    return partition_decision(None, image, changes)


def decide_continue_producer_ids(image: MetadataImage, logs: Sequence[FoundLog]) -> Decision[None]:
    """Allocate no producer ids that are in the logs."""
    return decide_continue_after(image.producer_ids, max((log.producer_id for log in logs), default=-1))
