"""Which partition of an internal topic holds what a coordinator knows of a group or a transactional id."""

from functools import lru_cache

_SIGN_BIT, _WORD = 1 << 31, 1 << 32


def java_hash(text: str) -> int:
    """`String.hashCode` of Java: over UTF-16 code units, 32 bits, signed."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) % _WORD
    return value - _WORD if value & _SIGN_BIT else value


@lru_cache(maxsize=1 << 14)
def partition_of(key: str, partitions_count: int) -> int:
    """The partition of a group id or transactional id (`Utils.abs(key.hashCode) % partitions`).

    The smallest hash has no absolute value in 32 bits; Kafka takes 0.
    """
    return abs(java_hash(key)) % _SIGN_BIT % partitions_count
