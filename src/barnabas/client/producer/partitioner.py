"""Chooses partitions: by key as Java's clients do, or sticky for records without one (KIP-794)."""

import struct
from collections.abc import Sequence
from random import Random

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_SHIFT = 24
_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF


def murmur2(data: bytes) -> int:
    """Return the 32-bit hash of Kafka's Java clients (`Utils.murmur2`), unsigned."""
    words, tail = divmod(len(data), 4)
    digest = _SEED ^ len(data)
    for word in struct.unpack_from(f"<{words}I", data):
        word = word * _MULTIPLIER & _MASK
        word = (word ^ word >> _SHIFT) * _MULTIPLIER & _MASK
        digest = digest * _MULTIPLIER & _MASK ^ word
    if tail:
        digest = (digest ^ int.from_bytes(data[-tail:], "little")) * _MULTIPLIER & _MASK
    digest = (digest ^ digest >> 13) * _MULTIPLIER & _MASK
    return digest ^ digest >> 15


def partition_for_key(key: bytes, partitions_count: int) -> int:
    """Return `toPositive(murmur2(key)) % n`, the partition of Java's default partitioner."""
    return (murmur2(key) & _POSITIVE) % partitions_count


class Sticky:
    """Keeps records without a key on one partition until they fill a batch."""

    def __init__(self, batch_size_bytes: int, random: Random) -> None:
        self._batch_size_bytes = batch_size_bytes
        self._random = random
        self._current: dict[str, tuple[int, int]] = {}  # topic -> (partition, bytes left in its batch)

    def partition(self, topic: str, available: Sequence[int], size_bytes: int) -> int:
        """Return the partition among `available` for a record of `size_bytes`."""
        partition, left_bytes = self._current.get(topic, (-1, 0))
        if left_bytes <= 0 or partition not in available:
            partition, left_bytes = self._random.choice(available), self._batch_size_bytes
        self._current[topic] = partition, left_bytes - size_bytes
        return partition
