"""Descriptions of consumer groups (ConsumerGroupDescribe)."""

from barnabas.groups.consumer.assignors.group_spec import Partitions
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.heartbeat_update import preferred_assignor
from barnabas.groups.consumer.member import ConsumerGroupMember, owned_partitions
from barnabas.groups.consumer.settings import Settings
from barnabas.metadata.image import MetadataImage
from barnabas.wire.messages import consumer_group_describe as messages

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def described(group: ConsumerGroup, settings: Settings, image: MetadataImage) -> messages.DescribedGroup:
    """Describe a group, its members, their assignments and targets; deleted topics are left out."""
    return messages.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group.members, settings),
        members=[_member(group, member, image) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerGroupMember, image: MetadataImage) -> messages.Member:
    return messages.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topics),
        subscribed_topic_regex=member.subscribed_regex,
        assignment=_assignment(owned_partitions(member), image),
        target_assignment=_assignment(group.target_of(member), image),
        member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
    )


def _assignment(partitions: Partitions, image: MetadataImage) -> messages.Assignment:
    topics = [
        messages.TopicPartitions(
            topic_id=topic_id, topic_name=image.topic_names[topic_id], partitions=sorted(indexes)
        )
        for topic_id, indexes in sorted(partitions.items())
        if topic_id in image.topic_names
    ]
    return messages.Assignment(topic_partitions=topics)
