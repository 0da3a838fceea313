"""Topics that a new metadata store finds on the disks: logs of Apache Kafka, or of a store that was lost."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from barnabas.base.topic_names import INTERNAL_TOPICS
from barnabas.config.broker_config import BrokerConfig
from barnabas.metadata.configs import TOPIC_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.internal_topics import BROKER_TOPICS, internal_topic
from barnabas.metadata.producer_ids import decide_continue_after
from barnabas.metadata.store import StoreChange
from barnabas.metadata.topics import (
    PARTITION_STATES,
    PartitionRegistration,
    TopicImage,
    partition_key,
    topic_put,
)

#: Internal topics of coordinators that Barnabas does not have.
_NOT_RECOVERED = INTERNAL_TOPICS - BROKER_TOPICS


class FoundLog(NamedTuple):
    """A log on disk, with the topic id from its directory."""

    topic: str
    topic_id: bytes
    partition: int
    #: the largest in its producer state; -1 if there is none
    producer_id: int = -1
    #: of the last leader that wrote; -1 if there is none
    leader_epoch: int = -1


def decide_recover_topics(
    image: MetadataImage, broker_id: int, logs: Iterable[FoundLog], config: BrokerConfig
) -> Decision[list[str]]:
    """Create topics for logs, each on this broker alone, if the cluster has no topics yet.

    A topic is created if its logs have the same topic id and no partition is missing; those of coordinators get their
    configs. Leader epochs continue after those in the logs, and producer ids after those in use, also if no topic is
    created: a new producer with an old id would seem to repeat the batches of the old one.

    :returns: The names of the created topics.
    """
    if image.topics or image.deleted_topics or image.trashed_topics:
        return Decision([])
    epochs: defaultdict[tuple[str, bytes], dict[int, int]] = defaultdict(dict)
    largest_producer_id = -1
    for log in logs:
        largest_producer_id = max(largest_producer_id, log.producer_id)
        epochs[log.topic, log.topic_id][log.partition] = log.leader_epoch
    names = [name for name, _ in epochs]
    topics = [
        TopicImage(name, topic_id, ((broker_id,),) * len(indexes))
        for (name, topic_id), indexes in sorted(epochs.items())
        if sorted(indexes) == list(range(len(indexes)))
        and names.count(name) == 1
        and name not in _NOT_RECOVERED
    ]
    changes: list[StoreChange] = []
    reads: dict[str, int] = {}
    for topic in topics:
        puts, absent = topic_put(topic)
        changes += puts
        reads.update(absent)
        changes += _next_epochs(topic, broker_id, epochs[topic.name, topic.topic_id])
        if topic.name in BROKER_TOPICS:
            configs = internal_topic(topic.name, config, 1).configs or {}
            own = {key: value for key, value in configs.items() if value is not None}
            changes.append(TOPIC_CONFIGS.put(topic.name, own))
    if epochs:
        continued = decide_continue_after(image.producer_ids, largest_producer_id)
        changes += continued.changes
        reads.update(continued.reads)
    return Decision([topic.name for topic in topics], tuple(changes), reads)


def _next_epochs(topic: TopicImage, broker_id: int, epochs: dict[int, int]) -> list[StoreChange]:
    """Return the states of partitions that have had a leader."""
    return [
        PARTITION_STATES.put(
            partition_key(topic.topic_id, index),
            PartitionRegistration(broker_id, epoch + 1, (broker_id,), partition_epoch=1),
        )
        for index, epoch in sorted(epochs.items())
        if epoch >= 0
    ]
