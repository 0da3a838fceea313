"""UndeleteTopic and PurgeTopics: restore topics from the trash, or delete them for good."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from barnabas.base.ids import ZERO_UUID, uuid_to_text
from barnabas.base.topic_names import INTERNAL_TOPICS, METADATA_TOPIC
from barnabas.config.config_resource import EVERY_BROKER
from barnabas.metadata.brokers import BROKERS
from barnabas.metadata.configs import BROKER_CONFIGS, TOPIC_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.features import ELR_VERSION
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_change_builder import brokers_up, build_partition_change
from barnabas.metadata.store import StoreChange
from barnabas.metadata.topic_creation import check_free
from barnabas.metadata.topics import (
    DELETED_TOPICS,
    NO_LEADER,
    PARTITION_STATES,
    DeletedTopic,
    TopicImage,
    check_name,
    initial_state,
    partition_key,
    topic_put,
)
from barnabas.metadata.trash import TRASHED_TOPICS, TrashRecord
from barnabas.wire.errors import ErrorCode, KafkaError

#: Maximum of partitions in the trash, each a directory with some files. When there are more, the topics that were
#: deleted first are purged.
PARTITIONS_MAX = 50_000


@dataclass(frozen=True, slots=True)
class TrashedTopicRequest:
    """A topic in the trash by name, and by id if several had that name."""

    name: str
    topic_id: bytes = ZERO_UUID


def find_trashed(image: MetadataImage, requested: TrashedTopicRequest) -> TrashRecord:
    """Return the requested topic in the trash.

    :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID; INVALID_REQUEST if several topics have the name.
    """
    if requested.topic_id != ZERO_UUID:
        trashed = image.trashed_topics.get(requested.topic_id.hex())
        if trashed is None or requested.name != trashed.name:
            message = f"There is no topic '{requested.name}' with id {uuid_to_text(requested.topic_id)} in the trash."
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, message)
        return trashed
    named = [trashed for trashed in image.trashed_topics.values() if trashed.name == requested.name]
    return _single(requested, named)


def _single(requested: TrashedTopicRequest, named: Sequence[TrashRecord]) -> TrashRecord:
    if not named:
        message = f"There is no topic '{requested.name}' in the trash."
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if len(named) > 1:
        ids = ", ".join(
            uuid_to_text(trashed.topic_id)
            for trashed in sorted(named, key=lambda trashed: trashed.deleted_ms)
        )
        message = (
            f"{len(named)} topics named '{requested.name}' are in the trash: select one by its id, of {ids}."
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    return named[0]


def decide_undelete(
    image: MetadataImage,
    requested: TrashedTopicRequest,
    new_name: str | None = None,
    admit: Callable[[int], None] = lambda count: None,
    min_isr_default: int = 1,
) -> Decision[TrashRecord]:
    """Restore a topic as it was, or as `new_name`.

    :param admit: Raises KafkaError if no more partitions may be created now.
    :param min_isr_default: min.insync.replicas of topics that do not set it.
    :raises KafkaError: As `find_trashed`; TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION for its name, and
        INVALID_REQUEST for an internal topic.
    """
    trashed = find_trashed(image, requested)
    name = trashed.name if new_name is None else new_name
    if name != trashed.name and name in INTERNAL_TOPICS | {METADATA_TOPIC}:
        message = f"Topic '{name}' is internal: no other topic can have its name."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    check_name(name)
    check_free(image, name)
    topic = replace(trashed.topic, name=name)
    admit(topic.partition_count)
    puts, absent = topic_put(topic)
    row = topic.topic_id.hex()
    changes = [*puts, TRASHED_TOPICS.remove(row)]
    if trashed.configs:
        changes.append(TOPIC_CONFIGS.put(name, trashed.configs))
    min_isr = None
    if image.finalized_features.get(ELR_VERSION, 0):
        min_isr = int(trashed.configs.get("min.insync.replicas", min_isr_default))
    states, depends_on = _restored_states(image, trashed, min_isr)
    changes += states
    reads = {**absent, **depends_on, TRASHED_TOPICS.key(row): image.trashed_topics.revision(row)}
    return Decision(replace(trashed, topic=topic), tuple(changes), reads)


def _restored_states(
    image: MetadataImage, trashed: TrashRecord, min_isr: int | None
) -> tuple[list[StoreChange], dict[str, int]]:
    """Return the states of the partitions, and what they depend on.

    Where there are several replicas, the brokers may have been restarted meanwhile. So a partition begins a new leader
    epoch, with a leader that is up. A broker that has started after an unclean stop since the deletion may have lost
    records. As in `decide_join` it leaves the in-sync replicas, if it is not the last of them.

    :param min_isr: As for `build_partition_change`.
    """
    puts = []
    topic, before = trashed.topic, trashed.states
    deletion_revision = image.trashed_topics.revision(topic.topic_id.hex())
    up = brokers_up(image)
    unclean = {
        broker.broker_id: broker.unclean_epoch
        for broker in image.brokers.values()
        if broker.unclean_epoch > deletion_revision
    }
    used: dict[int, None] = {}
    has_elr = False
    for index, replicas in enumerate(topic.assignments):
        state = replace(before.get(index) or initial_state(replicas), offline=())
        if not state.replicas:
            state = replace(state, replicas=replicas)
        if len(state.replicas) > 1 or state.leader == NO_LEADER:
            used.update(dict.fromkeys(state.replicas))
            isr = tuple(broker_id for broker_id in state.isr if broker_id not in unclean)
            if state.isr and not isr:
                last = max(state.isr, key=lambda broker_id: unclean[broker_id])
                isr, state = (last,) if min_isr is None else (), replace(state, leader=last)
            isr_up = tuple(broker_id for broker_id in isr if broker_id in up)
            if min_isr is None:
                isr_up = isr_up or isr or state.isr
            target = replace(state, isr=isr_up, leader=NO_LEADER)
            state = build_partition_change(state, target, up, min_isr=min_isr, unclean=unclean.keys())
            state = replace(state, leader_epoch=state.leader_epoch + 1)
            has_elr = has_elr or bool(state.elr)
        elif index not in before:
            continue
        puts.append(PARTITION_STATES.put(partition_key(topic.topic_id, index), state))
    reads = {BROKERS.key(str(each)): image.brokers.revision(str(each)) for each in sorted(used)}
    if has_elr:  # eligible as long as min.insync.replicas does not change
        reads[BROKER_CONFIGS.key(EVERY_BROKER)] = image.revision_of(BROKER_CONFIGS.key(EVERY_BROKER))
    return puts, reads


@dataclass(frozen=True, slots=True)
class Purged:
    """The result for one topic in the trash."""

    requested: TrashedTopicRequest
    topic: TopicImage | None = None
    error: KafkaError | None = None


def decide_purge(
    image: MetadataImage, requested_topics: Sequence[TrashedTopicRequest]
) -> Decision[list[Purged]]:
    """Purge topics from the trash; results are in the order of the requests."""
    outcomes: list[Purged] = []
    purged: dict[str, TrashRecord] = {}
    by_name: dict[str, list[TrashRecord]] = {}
    for topic in image.trashed_topics.values():
        by_name.setdefault(topic.name, []).append(topic)
    for requested in requested_topics:
        try:
            if requested.topic_id == ZERO_UUID:
                trashed = _single(requested, by_name.get(requested.name, ()))
            else:
                trashed = find_trashed(image, requested)
        except KafkaError as error:
            outcomes.append(Purged(requested, error=error.without_traceback()))
            continue
        purged[trashed.topic_id.hex()] = trashed
        outcomes.append(Purged(requested, trashed.topic))
    return Decision(outcomes, tuple(_purge_changes(purged.values())), _reads(image, purged))


@dataclass(frozen=True, slots=True)
class TrashSizes:
    """Sizes of topics in the trash in bytes, by id, and the maximum of their sum."""

    bytes_max: int
    by_topic: Mapping[bytes, int]

    def excess_bytes(self, topics: Iterable[TrashRecord]) -> int:
        """Return by how many bytes topics exceed the maximum."""
        return sum(self.by_topic.get(topic.topic_id, 0) for topic in topics) - self.bytes_max


UNBOUNDED = TrashSizes(0, {})


def decide_expire_trash(
    image: MetadataImage,
    deleted_before_ms: int,
    sizes: TrashSizes = UNBOUNDED,
    partitions_max: int = PARTITIONS_MAX,
    at_once_max: int = sys.maxsize,
) -> Decision[int]:
    """Purge topics that were deleted before a time, and the oldest ones if the trash is too large; return how many.

    Topics without bytes stay if the trash is too large. At most `at_once_max` topics are purged; call again for the
    others.
    """
    table = image.trashed_topics
    too_many = sum(len(trashed.topic.assignments) for trashed in table.rows.values()) - partitions_max
    excess_bytes = sizes.excess_bytes(table.rows.values())
    rows = sorted(table.rows, key=table.revision) if max(too_many, excess_bytes) > 0 else table.rows
    due: dict[str, TrashRecord] = {}
    for row in rows:
        trashed = table.rows[row]
        size_bytes = sizes.by_topic.get(trashed.topic_id, 0)
        is_too_much = too_many > 0 or (excess_bytes > 0 and size_bytes > 0)
        if is_too_much or trashed.deleted_ms < deleted_before_ms:
            due[row] = trashed
            too_many -= trashed.topic.partition_count
            excess_bytes -= size_bytes
            if len(due) == at_once_max:
                break
    return Decision(len(due), tuple(_purge_changes(due.values())), _reads(image, due))


def _purge_changes(topics: Iterable[TrashRecord]) -> Iterator[StoreChange]:
    """Return the changes that delete the topics, whose logs are then deleted as without a trash."""
    for topic in topics:
        row = topic.topic_id.hex()
        yield TRASHED_TOPICS.remove(row)
        yield DELETED_TOPICS.put(row, DeletedTopic(topic.name, topic.topic_id, topic.brokers))


def _reads(image: MetadataImage, rows: Iterable[str]) -> dict[str, int]:
    return {TRASHED_TOPICS.key(row): image.trashed_topics.revision(row) for row in rows}
