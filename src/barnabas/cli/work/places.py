"""Partitions that a command names, and what became of each."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from barnabas.base.ids import TopicPartition
from barnabas.cli.output import print_json
from barnabas.cli.partitions import PartitionArg
from barnabas.cli.work.outcomes import raise_all
from barnabas.client.admin.admin import Admin, raise_errors
from barnabas.client.core.metadata import TopicInfo
from barnabas.wire.errors import KafkaError

ValueT = TypeVar("ValueT")


async def expand_partitions(
    admin: Admin, places: Iterable[tuple[PartitionArg, ValueT]]
) -> dict[TopicPartition, ValueT]:
    """Each partition with its value; a topic without a partition stands for all of its partitions.

    :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION for such a topic that is not there.
    """
    given = list(places)
    whole = {place.topic for place, _ in given if place.partition is None}
    topics = await admin.describe_topics(whole) if whole else {}
    raise_errors(topics.values())
    found: dict[TopicPartition, ValueT] = {}
    for place, value in given:
        topic = topics.get(place.topic)
        if place.partition is not None:
            found[TopicPartition(place.topic, place.partition)] = value
        elif isinstance(topic, TopicInfo):
            for each in topic.partitions:
                found[TopicPartition(place.topic, each.partition_index)] = value
    return found


def print_outcomes(
    outcomes: Mapping[TopicPartition, KafkaError | None],
    done: str,
    content: Mapping[str, str],
    *,
    as_json: bool,
) -> None:
    """Print what became of each partition, then raise the errors that are not to be content with.

    :param content: names of error codes, and what is said instead.
    """
    if as_json:
        print_json([_as_json(place, error) for place, error in outcomes.items()])
    for place, error in outcomes.items() if not as_json else ():
        if error is None or error.code.name in content:
            print(f"{place}: {done if error is None else content[error.code.name]}")
    raise_all(error for error in outcomes.values() if error and error.code.name not in content)


def _as_json(place: TopicPartition, error: KafkaError | None) -> dict[str, object]:
    code, message = (None, None) if error is None else (error.code.name, error.message)
    return {"topic": place.topic, "partition": place.partition, "error": code, "message": message}
