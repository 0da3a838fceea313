"""Topics in metadata responses: leaders and replicas, and errors of partitions without a leader."""

from collections.abc import Sequence

from barnabas.base.topic_names import INTERNAL_TOPICS
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration, TopicImage
from barnabas.wire.codec import Repeated
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

#: Topics whose encoded partitions are cached.
DESCRIBED_COUNT_MAX = 1000


class TopicDescriptions:
    """Describes topics; partitions are described and encoded once for a revision of the metadata."""

    def __init__(self) -> None:
        self._revision = -1
        self._partitions: dict[bytes, Repeated[MetadataResponsePartition]] = {}  #: topic id -> partitions

    def describe(self, image: MetadataImage, topic: TopicImage) -> MetadataResponseTopic:
        """Return a topic with all its partitions, by index; the result must not be changed."""
        if image.revision < self._revision:  # a request that yielded to others has an older image
            return _described(topic, _partitions(image, topic))
        if image.revision != self._revision or len(self._partitions) >= DESCRIBED_COUNT_MAX:
            self._partitions.clear()
            self._revision = image.revision
        partitions = self._partitions.get(topic.topic_id)
        if partitions is None:
            partitions = self._partitions[topic.topic_id] = _partitions(image, topic)
        return _described(topic, partitions)


def _partitions(image: MetadataImage, topic: TopicImage) -> Repeated[MetadataResponsePartition]:
    return Repeated(_describe_partition(image, topic, index) for index in range(topic.partition_count))


def _described(topic: TopicImage, partitions: Repeated[MetadataResponsePartition]) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
    )


def _describe_partition(image: MetadataImage, topic: TopicImage, index: int) -> MetadataResponsePartition:
    state = image.partition(topic, index)
    offline = offline_replicas(image, state)
    leader = live_leader(state, offline)
    return MetadataResponsePartition(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE if leader == NO_LEADER else ErrorCode.NONE,
        partition_index=index,
        leader_id=leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        offline_replicas=offline,
    )


def live_leader(state: PartitionRegistration, offline: Sequence[int]) -> int:
    """Return the leader; none while it is offline and another is not elected yet: clients do not know its address."""
    return NO_LEADER if state.leader in offline else state.leader


def offline_replicas(image: MetadataImage, state: PartitionRegistration) -> list[int]:
    """Return the replicas whose broker is not active, or whose log directory has failed."""
    brokers = image.brokers
    return [
        replica
        for replica in state.replicas
        if (broker := brokers.get(str(replica))) is None or broker.fenced or replica in state.offline
    ]
