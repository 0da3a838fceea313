"""CreatePartitions: increase the number of partitions of topics."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.new_partitions import check_given_replicas, first_states
from barnabas.metadata.placement import Assignments, spread
from barnabas.metadata.store import StoreChange
from barnabas.metadata.topic_creation import PARTITIONS_PER_REQUEST_MAX, placeable_brokers
from barnabas.metadata.topics import TOPICS, TopicImage, unknown_topic
from barnabas.wire.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class MorePartitions:
    """A topic, its new partition count, and the assignments of new partitions if they are given."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class Grown:
    """The result for one topic."""

    name: str
    error: KafkaError | None = None


def decide_create_partitions(
    image: MetadataImage,
    requested: Sequence[MorePartitions],
    rng: random.Random,
    *,
    validate_only: bool,
    check: Callable[[str, int], None] = lambda name, count: None,
    admit: Callable[[int], None] = lambda count: None,
) -> Decision[list[Grown]]:
    """Decide each name; a name that occurs twice is refused.

    :param check: Raises KafkaError if a topic must not get that many partitions.
    :param admit: Raises KafkaError if no more partitions may be created now.
    """
    occurrences = Counter(more.name for more in requested)
    outcomes: dict[str, Grown] = {}
    changes: list[StoreChange] = []
    reads: dict[str, int] = {}
    for more in requested:
        try:
            if occurrences[more.name] > 1:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"Topic '{more.name}' is requested more than once."
                )
            topic = _grown(image, more, rng, admit)
            check(more.name, more.count)
        except KafkaError as error:
            outcomes[more.name] = Grown(more.name, error.without_traceback())
            continue
        outcomes[more.name] = Grown(more.name)
        changes.append(TOPICS.put(topic.name, topic))
        reads[TOPICS.key(topic.name)] = image.topics.revision(topic.name)
        states, depends_on = first_states(image, topic, image.topics[topic.name].partition_count)
        changes += states
        reads.update(depends_on)
    if validate_only:
        return Decision(list(outcomes.values()))
    return Decision(list(outcomes.values()), tuple(changes), reads)


def _grown(
    image: MetadataImage, more: MorePartitions, rng: random.Random, admit: Callable[[int], None]
) -> TopicImage:
    topic = image.topics.get(more.name)
    if topic is None:
        raise unknown_topic(more.name)
    added_count = more.count - topic.partition_count
    if added_count == 0:
        message = f"Topic already has {more.count} partition(s)."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
    if added_count < 0:
        message = (
            f"The topic {more.name} currently has {topic.partition_count} partition(s); {more.count} would not "
            "be an increase."
        )
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
    factor = len(image.partition(topic, 0).replicas)  # the present one: a reassignment may have changed it
    _check_assignment_count(more, added_count)
    admit(added_count)  # before brokers are checked, as in Kafka
    added = _added(image, more, added_count, factor, rng)
    return replace(topic, assignments=topic.assignments + added)


def _check_assignment_count(more: MorePartitions, added_count: int) -> None:
    if more.assignments is not None and len(more.assignments) != added_count:
        message = (
            f"Topic '{more.name}' gets {added_count} additional partition(s), but {len(more.assignments)} "
            "assignment(s) were given."
        )
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def _added(
    image: MetadataImage, more: MorePartitions, added_count: int, factor: int, rng: random.Random
) -> Assignments:
    if added_count > PARTITIONS_PER_REQUEST_MAX:
        message = f"{added_count} partitions are too many: at most {PARTITIONS_PER_REQUEST_MAX} at once."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
    if more.assignments is None:
        return spread(placeable_brokers(image), added_count, factor, rng)
    for index, replicas in enumerate(more.assignments, more.count - added_count):
        check_given_replicas(image, index, replicas, factor)
    return tuple(tuple(replicas) for replicas in more.assignments)
