"""The embedded consumer protocol: subscriptions and assignments of classic consumers."""

from barnabas.groups.consumer.assignors.group_spec import Partitions
from barnabas.metadata.image import MetadataImage
from barnabas.wire.codec import DecodeError
from barnabas.wire.consumer_protocol.assignment import ConsumerProtocolAssignment, TopicPartition
from barnabas.wire.consumer_protocol.subscription import ConsumerProtocolSubscription
from barnabas.wire.consumer_protocol.versioned import read_assignment, version_of, write


def owned_by(subscription: ConsumerProtocolSubscription, image: MetadataImage) -> Partitions:
    """Return the owned partitions of a subscription; deleted topics are left out."""
    owned: dict[bytes, frozenset[int]] = {}
    for topic_partitions in subscription.owned_partitions:
        topic = image.topics.get(topic_partitions.topic)
        if topic is not None:
            owned[topic.topic_id] = owned.get(topic.topic_id, frozenset()) | frozenset(
                topic_partitions.partitions
            )
    return owned


def encode_assignment(partitions: Partitions, subscription: bytes, image: MetadataImage) -> bytes:
    """Encode an assignment in the version of the member's subscription; version 0 if that cannot be read."""
    topics = [
        TopicPartition(topic=image.topic_names[topic_id], partitions=sorted(indexes))
        for topic_id, indexes in partitions.items()
        if topic_id in image.topic_names
    ]
    assignment = ConsumerProtocolAssignment(assigned_partitions=topics)
    try:
        version = version_of(subscription)
    except DecodeError:
        version = assignment.VERSIONS.first
    return write(assignment, max(assignment.VERSIONS.first, min(version, assignment.VERSIONS.last)))


def decode_assignment(assignment: bytes, image: MetadataImage) -> tuple[Partitions, bool]:
    """Decode an assignment of a leader; return it, and whether it has user data.

    :raises DecodeError: If it cannot be read.
    """
    if not assignment:
        return {}, False
    message = read_assignment(assignment)
    by_name = {topic.topic: frozenset(topic.partitions) for topic in message.assigned_partitions}
    known = {
        image.topics[name].topic_id: indexes for name, indexes in by_name.items() if name in image.topics
    }
    return known, bool(message.user_data)
