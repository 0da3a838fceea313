"""Partitions as arguments: TOPIC:PARTITION."""

from typing import NamedTuple

from barnabas.cli.failures import wrong_use


class PartitionArg(NamedTuple):
    """A partition of a topic; None stands for all of them."""

    topic: str
    partition: int | None


def place(text: str) -> PartitionArg:
    """`orders:0` or `orders`.

    :raises Failure: For a partition that is no number.
    """
    topic, colon, number = text.partition(":")
    if colon and not number.isdecimal():
        raise wrong_use(f"'{text}': a partition is a number, as in {topic}:0")
    return PartitionArg(topic, int(number) if colon else None)


def target(text: str) -> tuple[PartitionArg, list[int]]:
    """`orders:0=2,3`: a partition, or a topic for all of its partitions, and the brokers for it.

    :raises Failure: For anything else.
    """
    where, equals, brokers = text.partition("=")
    ids = brokers.split(",")
    if not equals or not all(each.strip().isdecimal() for each in ids):
        raise wrong_use(f"'{text}': say a partition and its brokers, as in orders:0=2,3")
    return place(where), [int(each) for each in ids]


def offset(text: str) -> tuple[PartitionArg, int | None]:
    """`orders:0=100` or `orders=end`: a partition, or a topic for all of its partitions, and an offset; None: the end.

    :raises Failure: For anything else.
    """
    where, equals, number = text.rpartition("=")
    if not equals or not (number.isdecimal() or number == "end"):
        raise wrong_use(f"'{text}': say a partition and an offset, as in orders:0=100 or orders:0=end")
    return place(where), None if number == "end" else int(number)
