"""The partition of an internal topic that holds a group or a transactional id, and its leader, the coordinator."""

from functools import lru_cache

from barnabas.metadata.image import MetadataImage

_SIGN_BIT, _WORD = 1 << 31, 1 << 32


def java_hash(text: str) -> int:
    """Return Java's `String.hashCode`: over UTF-16 code units, 32 bits, signed."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) % _WORD
    return value - _WORD if value & _SIGN_BIT else value


@lru_cache(maxsize=1 << 14)
def partition_of(key: str, partitions_count: int) -> int:
    """Return the partition of a group id or transactional id (`Utils.abs(key.hashCode) % partitions`).

    The smallest hash has no absolute value in 32 bits; Kafka uses 0.
    """
    return abs(java_hash(key)) % _SIGN_BIT % partitions_count


def coordinator_of(image: MetadataImage, internal_topic: str, key: str) -> int | None:
    """Return the broker that coordinates a key, or NO_LEADER; None if the internal topic does not exist."""
    topic = image.topics.get(internal_topic)
    if topic is None:
        return None
    return image.partition(topic, partition_of(key, topic.partition_count)).leader
