"""Which topics the members of a classic group read, as far as they have told in the consumers' way."""

from collections.abc import Iterable

from barnabas.wire.codec import DecodeError
from barnabas.wire.consumer_protocol.versioned import read_subscription

#: The protocol type of consumers; other types tell each other what they like.
CONSUMER = "consumer"


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """All topics that are named; None when a subscription cannot be read."""
    try:
        return frozenset(
            topic for subscription in subscriptions for topic in read_subscription(subscription).topics
        )
    except DecodeError:
        return None
