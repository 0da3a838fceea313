"""DeleteTopics: clients no longer see a topic from the commit on; its logs are deleted soon after."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from barnabas.base.ids import ZERO_UUID, uuid_to_text
from barnabas.metadata.configs import TOPIC_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import StoreChange
from barnabas.metadata.topics import (
    DELETED_TOPICS,
    TAKEN_NAMES,
    TOPICS,
    DeletedTopic,
    TopicImage,
    collision_key,
    partition_key,
    states_prefix,
    unknown_topic,
    unknown_topic_id,
)
from barnabas.metadata.trash import TRASHED_TOPICS, TrashEntry, TrashRecord
from barnabas.wire.coordinator_records.committed_offset import CommittedOffset
from barnabas.wire.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class TopicToDelete:
    """A topic by name, or by id if the name is None."""

    name: str | None = None
    topic_id: bytes = ZERO_UUID


@dataclass(frozen=True, slots=True)
class Deleted:
    """The result for one topic: its name and id as far as they are known, and the error."""

    name: str | None
    topic_id: bytes
    error: KafkaError | None = None


def decide_delete(
    image: MetadataImage,
    requested: Sequence[TopicToDelete],
    check: Callable[[str], None] = lambda name: None,
    admit: Callable[[int], None] = lambda count: None,
    trash: TrashEntry | None = None,
) -> Decision[list[Deleted]]:
    """Decide each topic; one that occurs twice, by name, id or both, is refused.

    :param check: Raises KafkaError for a topic that must not be deleted.
    :param admit: Raises KafkaError if no more partitions may be deleted now.
    :param trash: Moves the topics to the trash; None deletes them immediately.
    """
    groups: dict[object, list[TopicToDelete]] = {}
    for topic_request in requested:
        groups.setdefault(identity(image, topic_request), []).append(topic_request)
    outcomes: list[Deleted] = []
    accepted: list[TopicImage] = []
    for group in groups.values():
        name = next((topic_request.name for topic_request in group if topic_request.name is not None), None)
        topic_id = max(
            topic_request.topic_id for topic_request in group
        )  # every id is greater than the zero id
        try:
            topic = _find(image, group)
            check(topic.name)
            admit(topic.partition_count)
        except KafkaError as error:
            outcomes.append(Deleted(name, topic_id, error.without_traceback()))
            continue
        accepted.append(topic)
        outcomes.append(Deleted(topic.name, topic.topic_id))
    changes = tuple(change for topic in accepted for change in _changes(image, topic, trash))
    reads = {TOPICS.key(topic.name): image.topics.revision(topic.name) for topic in accepted}
    reads |= {TOPIC_CONFIGS.key(topic.name): image.topic_configs.revision(topic.name) for topic in accepted}
    reads |= {states_prefix(topic.topic_id): image.revision for topic in accepted}
    return Decision(outcomes, changes, reads)


def identity(image: MetadataImage, requested: TopicToDelete) -> Hashable:
    """Return a key that is equal for requests of the same topic; requests of unknown topics have different keys."""
    by_id = requested.topic_id != ZERO_UUID
    if by_id == (requested.name is not None):
        return object()
    topic = image.topic_by_id(requested.topic_id) if by_id else image.topics.get(requested.name or "")
    return requested if topic is None else topic.topic_id


def _find(image: MetadataImage, group: Sequence[TopicToDelete]) -> TopicImage:
    """Return the topic that all of `group` request, if there is one request."""
    requested = group[0]
    name, topic_id = requested.name, requested.topic_id
    if len(group) > 1:
        topic_name = name if name is not None else uuid_to_text(topic_id)
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Topic '{topic_name}' is requested more than once.")
    if name is None and topic_id == ZERO_UUID:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "The request has neither a topic name nor a topic id: one is required."
        )
    if name is not None and topic_id != ZERO_UUID:
        message = "The request has both a topic name and a topic id: only one is allowed."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if name is None:
        return _require_topic(image.topic_by_id(topic_id), unknown_topic_id(uuid_to_text(topic_id)))
    return _require_topic(image.topics.get(name), unknown_topic(name))


def _require_topic(topic: TopicImage | None, unknown: KafkaError) -> TopicImage:
    if topic is None:
        raise unknown
    return topic


def _changes(image: MetadataImage, topic: TopicImage, trash: TrashEntry | None) -> list[StoreChange]:
    row = topic.topic_id.hex()
    replicas = {
        replica
        for index in range(topic.partition_count)
        for replica in image.partition(topic, index).replicas
    }
    deletion = DELETED_TOPICS.put(row, DeletedTopic(topic.name, topic.topic_id, tuple(sorted(replicas))))
    trashing = trash and TRASHED_TOPICS.put(row, _trashed(image, topic, trash))
    changes = [TOPICS.remove(topic.name), trashing or deletion]
    if image.taken_names.get(name_key := collision_key(topic.name) or "") == topic.name:
        changes.append(TAKEN_NAMES.remove(name_key))
    if topic.name in image.topic_configs:
        changes.append(TOPIC_CONFIGS.remove(topic.name))
    keys = (partition_key(topic.topic_id, index) for index in range(topic.partition_count))
    if any(key in image.partition_states for key in keys):
        changes.append(StoreChange(states_prefix(topic.topic_id), None))
    return changes


def _trashed(image: MetadataImage, topic: TopicImage, trash: TrashEntry) -> TrashRecord:
    states = {
        index: image.partition_states[key]
        for index in range(topic.partition_count)
        if (key := partition_key(topic.topic_id, index)) in image.partition_states
    }
    configs = image.topic_configs.get(topic.name, {})
    offsets = {
        group_id: own_offsets
        for group_id, partitions in trash.offsets.get(topic.name, {}).items()
        if (own_offsets := {index: offset for index, offset in partitions.items() if _is_of(offset, topic)})
    }
    return TrashRecord(topic, configs, states, trash.deleted_ms, trash.deleted_by, offsets)


def _is_of(committed: CommittedOffset, topic: TopicImage) -> bool:
    """Whether an offset was committed for this topic, and not for an earlier one of the same name."""
    return committed.topic_id in (ZERO_UUID, topic.topic_id)


def decide_remove_deleted(image: MetadataImage, topic_ids: Sequence[bytes], broker_id: int) -> Decision[None]:
    """Record that a broker has removed its logs of deleted topics; the last one removes the topics.

    Until then a broker that was down during the deletion finds out that its logs are not needed.
    """
    changes: list[StoreChange] = []
    reads: dict[str, int] = {}
    for row in {topic_id.hex(): None for topic_id in topic_ids}:
        deleted = image.deleted_topics.get(row)
        if deleted is None:
            continue
        left = tuple(each for each in deleted.brokers if each != broker_id and str(each) in image.brokers)
        if not left:
            changes.append(DELETED_TOPICS.remove(row))
        elif left != deleted.brokers:
            changes.append(DELETED_TOPICS.put(row, replace(deleted, brokers=left)))
        else:
            continue
        reads[DELETED_TOPICS.key(row)] = image.deleted_topics.revision(row)
    return Decision(None, tuple(changes), reads)
