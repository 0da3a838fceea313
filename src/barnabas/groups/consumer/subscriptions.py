"""Subscriptions of all members of a group."""

import hashlib
import struct
from collections.abc import Iterable, Mapping

from barnabas.groups.consumer.assignors.group_spec import GroupSpec, MemberSpec
from barnabas.groups.consumer.group import ConsumerGroup, subscribed_topic_ids, subscribed_topics
from barnabas.groups.consumer.member import ConsumerGroupMember
from barnabas.groups.consumer.regex import ResolvedRegex
from barnabas.metadata.image import MetadataImage

_PARTITIONS = struct.Struct(">i")
_HASH = struct.Struct(">q")


def metadata_hash(
    members: Iterable[ConsumerGroupMember], regexes: Mapping[str, ResolvedRegex], image: MetadataImage
) -> int:
    """Return a hash of the subscribed topics, which changes when one is created, deleted or extended; 0 for none.

    It is only compared with earlier results of this function, so it need not be Kafka's.
    """
    names = frozenset[str]().union(*(subscribed_topics(member, regexes) for member in members))
    digest = hashlib.blake2b(digest_size=_HASH.size)
    topics = [topic for name in sorted(names) if (topic := image.topics.get(name)) is not None]
    for topic in topics:
        digest.update(topic.topic_id + _PARTITIONS.pack(topic.partition_count))
    number: int
    (number,) = _HASH.unpack(digest.digest())
    return number if topics else 0


def group_spec(
    group: ConsumerGroup,
    members: Mapping[str, ConsumerGroupMember],
    regexes: Mapping[str, ResolvedRegex],
    image: MetadataImage,
) -> GroupSpec:
    """Return the group as assignors see it."""
    specs = {
        member_id: MemberSpec(
            subscribed_topic_ids(member, regexes, image), group.target_of(member), member.instance_id
        )
        for member_id, member in members.items()
    }
    topic_ids = frozenset[bytes]().union(*(spec.topic_ids for spec in specs.values()))
    counts = {}
    for topic_id in topic_ids:
        topic = image.topic_by_id(topic_id)
        assert topic is not None, topic_id
        counts[topic_id] = topic.partition_count
    return GroupSpec(specs, counts)
