"""Subscriptions of classic groups, if their members are consumers."""

from collections.abc import Iterable

from barnabas.wire.codec import DecodeError
from barnabas.wire.consumer_protocol.versioned import read_subscription

#: The protocol type of consumers; the metadata of other types is opaque.
CONSUMER = "consumer"


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return all subscribed topics; None if a subscription cannot be read."""
    try:
        return frozenset(
            topic for subscription in subscriptions for topic in read_subscription(subscription).topics
        )
    except DecodeError:
        return None
