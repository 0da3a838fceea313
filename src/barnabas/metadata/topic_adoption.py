"""Topics that a fresh cluster finds on its disks: logs that Apache Kafka, or a lost metadata store, left there."""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.metadata.decision import Decision
from barnabas.metadata.image import Image
from barnabas.metadata.producer_ids import KEY as PRODUCER_IDS_KEY
from barnabas.metadata.producer_ids import PRODUCER_IDS
from barnabas.metadata.store import Change
from barnabas.metadata.topics import INTERNAL_TOPICS, Topic, topic_put


class FoundLog(NamedTuple):
    """A log on disk: its topic, its partition, and the topic's id as its directory says."""

    topic: str
    topic_id: bytes
    partition: int
    #: The largest that the log remembers; -1 for none.
    producer_id: int = -1


def decide_adopt(image: Image, broker_id: int, found: Iterable[FoundLog]) -> Decision[list[str]]:
    """Make topics of logs, each on this broker alone, if the cluster knows no topics yet.

    A topic is adopted when its logs agree on its id and leave no partition out. Internal topics are not: what
    stands in them is another cluster's. Producer ids go on behind those in the logs: a new producer with an old id
    would seem to repeat what the old one wrote.

    :returns: The names of the topics that are adopted.
    """
    if image.topics or image.deleted_topics:
        return Decision([])
    partitions: dict[tuple[str, bytes], set[int]] = {}
    next_producer_id = 0
    for log in found:
        next_producer_id = max(next_producer_id, log.producer_id + 1)
        partitions.setdefault((log.topic, log.topic_id), set()).add(log.partition)
    names = [name for name, _ in partitions]
    topics = [
        Topic(name, topic_id, ((broker_id,),) * len(indexes))
        for (name, topic_id), indexes in sorted(partitions.items())
        if indexes == set(range(len(indexes))) and names.count(name) == 1 and name not in INTERNAL_TOPICS
    ]
    changes: list[Change] = []
    reads: dict[str, int] = {}
    for topic in topics:
        puts, absent = topic_put(topic)
        changes += puts
        reads.update(absent)
    if topics and next_producer_id > image.producer_ids.get(PRODUCER_IDS_KEY, 0):
        changes.append(PRODUCER_IDS.put(PRODUCER_IDS_KEY, next_producer_id))
        reads[PRODUCER_IDS.key(PRODUCER_IDS_KEY)] = image.producer_ids.revision(PRODUCER_IDS_KEY)
    return Decision([topic.name for topic in topics], tuple(changes), reads)
