"""Parsing of partition arguments: TOPIC:PARTITION."""

from typing import NamedTuple

from barnabas.cli.failures import wrong_use


class PartitionArg(NamedTuple):
    """A partition of a topic; None stands for all its partitions."""

    topic: str
    partition: int | None


def parse_partition(text: str) -> PartitionArg:
    """Parse `orders:0` or `orders`.

    :raises CommandError: For a partition that is not a number.
    """
    topic, colon, number = text.partition(":")
    if colon and not number.isdecimal():
        raise wrong_use(f"'{text}': the partition must be a number, as in {topic}:0")
    return PartitionArg(topic, int(number) if colon else None)


def parse_reassignment(text: str) -> tuple[PartitionArg, list[int]]:
    """Parse `orders:0=2,3`: a partition, or a topic for all of its partitions, and its new brokers.

    :raises CommandError: For any other form.
    """
    partition, equals, brokers = text.partition("=")
    ids = brokers.split(",")
    if not equals or not all(broker.strip().isdecimal() for broker in ids):
        raise wrong_use(f"'{text}': must be a partition and its brokers, as in orders:0=2,3")
    return parse_partition(partition), [int(broker) for broker in ids]


def parse_offset(text: str) -> tuple[PartitionArg, int | None]:
    """Parse `orders:0=100` or `orders=end`: a partition, or a topic for all of its partitions, and an offset.

    The offset is None for `end`.

    :raises CommandError: For any other form.
    """
    partition, equals, number = text.rpartition("=")
    if not equals or not (number.isdecimal() or number == "end"):
        raise wrong_use(f"'{text}': must be a partition and an offset, as in orders:0=100 or orders:0=end")
    return parse_partition(partition), None if number == "end" else int(number)
