"""Subscriptions and assignments of classic groups, if their members are consumers."""

from collections.abc import Iterable

from barnabas.groups.rebalance_history import AssignedTopics
from barnabas.wire.codec import DecodeError
from barnabas.wire.consumer_protocol.versioned import read_assignment, read_subscription

#: The protocol type of consumers; the metadata of other types is opaque.
CONSUMER = "consumer"

#: Longer assignments are not decoded for the history of rebalances.
_DECODED_BYTES_MAX = 64 << 10


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return all subscribed topics; None if a subscription cannot be read."""
    try:
        return frozenset(
            topic for subscription in subscriptions for topic in read_subscription(subscription).topics
        )
    except DecodeError:
        return None


def assigned_topics(assignment: bytes) -> AssignedTopics | None:
    """Decode a member's assignment; return None if it cannot be read or is very long."""
    if not assignment:
        return {}
    if len(assignment) > _DECODED_BYTES_MAX:
        return None
    try:
        topics = read_assignment(assignment).assigned_partitions
    except DecodeError:
        return None
    return {topic.topic: tuple(sorted(topic.partitions)) for topic in topics}
