"""Partitions as arguments: TOPIC:PARTITION, and the results for each of them."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from barnabas.base.ids import TopicPartition
from barnabas.cli.support.failures import wrong_use
from barnabas.cli.support.outcomes import raise_all
from barnabas.cli.support.output import print_json
from barnabas.client.admin.admin import Admin, raise_errors
from barnabas.client.core.metadata import TopicInfo
from barnabas.wire.errors import KafkaError

ValueT = TypeVar("ValueT")


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
    ids = _broker_ids(brokers)
    if not equals or ids is None:
        raise wrong_use(f"'{text}': must be a partition and its brokers, as in orders:0=2,3")
    return parse_partition(partition), ids


def parse_brokers(text: str) -> list[int]:
    """Parse `1,2,4`.

    :raises CommandError: For any other form.
    """
    ids = _broker_ids(text)
    if ids is None:
        raise wrong_use(f"'{text}': must be ids of brokers, as in 1,2,4")
    return ids


def _broker_ids(text: str) -> list[int] | None:
    ids = text.split(",")
    return [int(broker) for broker in ids] if all(broker.strip().isdecimal() for broker in ids) else None


def parse_offset(text: str) -> tuple[PartitionArg, int | None]:
    """Parse `orders:0=100` or `orders=end`: a partition, or a topic for all of its partitions, and an offset.

    The offset is None for `end`.

    :raises CommandError: For any other form.
    """
    partition, equals, number = text.rpartition("=")
    if not equals or not (number.isdecimal() or number == "end"):
        raise wrong_use(f"'{text}': must be a partition and an offset, as in orders:0=100 or orders:0=end")
    return parse_partition(partition), None if number == "end" else int(number)


async def expand_partitions(
    admin: Admin, partition_args: Iterable[tuple[PartitionArg, ValueT]]
) -> dict[TopicPartition, ValueT]:
    """Return the value of each partition; a topic without a partition stands for all of its partitions.

    :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION for such a topic that does not exist.
    """
    arguments = list(partition_args)
    whole_topics = {argument.topic for argument, _ in arguments if argument.partition is None}
    topics = await admin.describe_topics(whole_topics) if whole_topics else {}
    raise_errors(topics.values())
    values: dict[TopicPartition, ValueT] = {}
    for argument, value in arguments:
        topic = topics.get(argument.topic)
        if argument.partition is not None:
            values[TopicPartition(argument.topic, argument.partition)] = value
        elif isinstance(topic, TopicInfo):
            for partition in topic.partitions:
                values[TopicPartition(argument.topic, partition.partition_index)] = value
    return values


def print_results(
    results: Mapping[TopicPartition, KafkaError | None],
    success: str,
    tolerated: Mapping[str, str],
    *,
    as_json: bool,
) -> None:
    """Print the result for each partition, then raise the errors that are not tolerated.

    :param success: Text for partitions without an error.
    :param tolerated: Names of tolerated error codes, and the texts printed for them.
    """
    if as_json:
        print_json([result_json(tp, error) for tp, error in results.items()])
    for tp, error in results.items() if not as_json else ():
        if error is None or error.code.name in tolerated:
            print(f"{tp}: {success if error is None else tolerated[error.code.name]}")
    raise_all(error for error in results.values() if error and error.code.name not in tolerated)


def result_json(tp: TopicPartition, error: KafkaError | None) -> dict[str, object]:
    code, message = (None, None) if error is None else (error.code.name, error.message)
    return {"topic": tp.topic, "partition": tp.partition, "error": code, "message": message}
