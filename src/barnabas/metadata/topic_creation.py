"""CreateTopics: each topic is decided on its own."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from barnabas.base.ids import METADATA_TOPIC_UUID, ZERO_UUID
from barnabas.base.topic_names import METADATA_TOPIC
from barnabas.metadata.configs import TOPIC_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.new_partitions import check_given_replicas, first_states
from barnabas.metadata.placement import Assignments, PlaceableBrokers, spread
from barnabas.metadata.store import StoreChange
from barnabas.metadata.topics import TopicImage, check_name, collision_key, topic_put
from barnabas.wire.errors import ErrorCode, KafkaError

#: Limit of one request in Apache Kafka (`ReplicationControlManager.MAX_PARTITIONS_PER_BATCH`).
PARTITIONS_PER_REQUEST_MAX = 10_000

#: The broker's default for the number of partitions or replicas (KIP-464).
DEFAULT = -1


@dataclass(frozen=True, slots=True)
class TopicToCreate:
    """A requested topic; `assignments` exclude the two counts."""

    name: str
    partition_count: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: Mapping[int, Sequence[int]] | None = None
    configs: Mapping[str, str | None] | None = None


@dataclass(frozen=True, slots=True)
class CreationRules:
    """What the broker's configuration requires of new topics."""

    partition_count_default: int
    replication_factor_default: int
    #: (topic name, configs); raises KafkaError if they are not valid
    check_configs: Callable[[Mapping[str, str | None]], None]


@dataclass(frozen=True, slots=True)
class TopicCreationResult:
    """The topic that is created, or would be if it is only validated; or the error."""

    name: str
    topic: TopicImage | None = None
    overrides: Mapping[str, str] | None = None
    error: KafkaError | None = None


def decide_create(
    image: MetadataImage,
    requested: Sequence[TopicToCreate],
    rules: CreationRules,
    rng: random.Random,
    *,
    validate_only: bool,
    admit: Callable[[int], None] = lambda count: None,
) -> Decision[list[TopicCreationResult]]:
    """Decide each name; a name that occurs twice is refused, and the others are not affected.

    :param admit: Raises KafkaError if no more partitions may be created now; called for each valid topic.
    :raises KafkaError: POLICY_VIOLATION for a request with too many partitions.
    """
    occurrences = Counter(topic.name for topic in requested)
    partition_count = sum(_partition_count(new, rules) for new in requested if occurrences[new.name] == 1)
    if partition_count > PARTITIONS_PER_REQUEST_MAX:
        message = "Excessively large number of partitions per request."
        raise KafkaError(ErrorCode.POLICY_VIOLATION, message)
    new_names: dict[str, str] = {}
    results: dict[str, TopicCreationResult] = {}
    for new in requested:
        try:
            if occurrences[new.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            topic = _new_topic(image, new, rules, rng, new_names)
            admit(topic.partition_count)
        except KafkaError as error:
            results[new.name] = TopicCreationResult(new.name, error=error.without_traceback())
            continue
        overrides = {key: value for key, value in (new.configs or {}).items() if value is not None}
        results[new.name] = TopicCreationResult(new.name, topic, overrides)
        if (key := collision_key(new.name)) is not None:
            new_names[key] = new.name
    if validate_only:
        return Decision(list(results.values()))
    return _decision(image, results)


def _partition_count(new: TopicToCreate, rules: CreationRules) -> int:
    """Return how many partitions a topic would get; 0 if the request is not valid."""
    if new.assignments:
        return len(new.assignments)
    return rules.partition_count_default if new.partition_count == DEFAULT else max(0, new.partition_count)


def _decision(
    image: MetadataImage, results: Mapping[str, TopicCreationResult]
) -> Decision[list[TopicCreationResult]]:
    changes: list[StoreChange] = []
    reads: dict[str, int] = {}
    for name, result in results.items():
        if result.topic is None:
            continue
        for puts, depends_on in (topic_put(result.topic), first_states(image, result.topic)):
            changes += puts
            reads.update(depends_on)
        if result.overrides:
            changes.append(TOPIC_CONFIGS.put(name, result.overrides))
    return Decision(list(results.values()), tuple(changes), reads)


def _new_topic(
    image: MetadataImage,
    new: TopicToCreate,
    rules: CreationRules,
    rng: random.Random,
    new_names: Mapping[str, str],
) -> TopicImage:
    check_name(new.name)
    if new.name == METADATA_TOPIC:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited."
        )
    check_free(image, new.name, new_names)
    rules.check_configs(new.configs or {})
    if new.assignments:
        assignments = _check_manual_assignment(image, new)
    else:
        assignments = _automatic(new, rules, placeable_brokers(image), rng)
    return TopicImage(new.name, random_topic_id(rng), assignments)


def check_free(image: MetadataImage, name: str, new_names: Mapping[str, str] = MappingProxyType({})) -> None:
    """Check that no topic has the name, and that no topic that is being created (`new_names`, by collision key)
    collides with it.

    :raises KafkaError: TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION for a collision.
    """
    if name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    key = collision_key(name) or ""
    other = new_names.get(key) or image.taken_names.get(key)
    if other is not None:
        message = f"Topic '{name}' collides with topic '{other}': '.' and '_' count as the same character."
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)


def _check_manual_assignment(image: MetadataImage, new: TopicToCreate) -> Assignments:
    for count, what in (
        (new.replication_factor, "replication factor"),
        (new.partition_count, "partition count"),
    ):
        if count != DEFAULT:
            message = f"A manual partition assignment excludes a {what}: it is {count}, and must be -1."
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    by_hand = new.assignments or {}
    replication_factor = None
    for index in sorted(by_hand):
        check_given_replicas(image, index, by_hand[index], replication_factor)
        replication_factor = len(by_hand[index])
    if sorted(by_hand) != list(range(len(by_hand))):
        message = (
            f"The partitions of a manual assignment must be 0 to {len(by_hand) - 1}, not {sorted(by_hand)}."
        )
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return tuple(tuple(by_hand[index]) for index in range(len(by_hand)))


def _automatic(
    new: TopicToCreate, rules: CreationRules, brokers: PlaceableBrokers, rng: random.Random
) -> Assignments:
    if new.replication_factor < DEFAULT or new.replication_factor == 0:
        message = "Replication factor must be larger than 0, or -1 to use the default value."
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    if new.partition_count < DEFAULT or new.partition_count == 0:
        message = "Number of partitions was set to an invalid non-positive value."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
    factor = rules.replication_factor_default if new.replication_factor == DEFAULT else new.replication_factor
    return spread(brokers, _partition_count(new, rules), factor, rng)


def placeable_brokers(image: MetadataImage) -> PlaceableBrokers:
    """Return the brokers that get replicas automatically: those that are not cordoned."""
    up: dict[int, str | None] = {}
    fenced: dict[int, str | None] = {}
    for broker in sorted(image.brokers.values(), key=lambda broker: broker.broker_id):
        if not broker.cordoned:
            (fenced if broker.fenced else up)[broker.broker_id] = broker.rack
    return PlaceableBrokers(up, fenced)


def random_topic_id(rng: random.Random) -> bytes:
    """Return a new topic id that is not reserved and does not begin with a dash in its text form."""
    while True:
        topic_id = rng.randbytes(6) + bytes([rng.randrange(16) | 0x40]) + rng.randbytes(1) + rng.randbytes(8)
        # Command-line tools would read a leading dash (base64 digit 62) as an option.
        if topic_id not in (ZERO_UUID, METADATA_TOPIC_UUID) and topic_id[0] >> 2 != 62:
            return topic_id
