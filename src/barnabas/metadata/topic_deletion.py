"""DeleteTopics, decided: gone for clients at the commit, gone from disks soon after."""

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.base.ids import ZERO_UUID, uuid_to_text
from barnabas.metadata.configs import TOPIC_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import Image
from barnabas.metadata.store import Change
from barnabas.metadata.topics import (
    DELETED_TOPICS,
    PARTITION_STATES,
    TOPICS,
    DeletedTopic,
    Topic,
    partition_key,
    unknown_topic,
    unknown_topic_id,
)
from barnabas.wire.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class TopicToDelete:
    """A topic by name, or by id where the name is None."""

    name: str | None = None
    topic_id: bytes = ZERO_UUID


@dataclass(frozen=True, slots=True)
class Deleted:
    """What became of one topic: its name and id as far as they are known, and why not if not."""

    name: str | None
    topic_id: bytes
    error: KafkaError | None = None


def decide_delete(image: Image, requested: Sequence[TopicToDelete]) -> Decision[list[Deleted]]:
    """One answer for each topic; a topic asked for twice, by name or by id, is refused."""
    outcomes: list[Deleted] = []
    accepted: dict[bytes, Topic] = {}
    seen: set[bytes] = set()
    for asked in requested:
        try:
            topic = _find(image, asked)
            if topic.topic_id in seen:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"Topic '{topic.name}' is asked for more than once."
                )
        except KafkaError as error:
            outcomes.append(Deleted(asked.name, asked.topic_id, error))
            continue
        seen.add(topic.topic_id)
        accepted[topic.topic_id] = topic
        outcomes.append(Deleted(topic.name, topic.topic_id))
    changes = tuple(change for topic in accepted.values() for change in _changes(image, topic))
    reads = {TOPICS.key(topic.name): image.topics.revision(topic.name) for topic in accepted.values()}
    return Decision(outcomes, changes, reads)


def _find(image: Image, asked: TopicToDelete) -> Topic:
    if asked.name is None:
        if asked.topic_id == ZERO_UUID:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither a topic name nor a topic id is given.")
        topic = image.topic_by_id(asked.topic_id)
        if topic is None:
            raise unknown_topic_id(uuid_to_text(asked.topic_id))
        return topic
    if asked.topic_id != ZERO_UUID:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Both a topic name and a topic id are given: one is enough."
        )
    topic = image.topics.get(asked.name)
    if topic is None:
        raise unknown_topic(asked.name)
    return topic


def _changes(image: Image, topic: Topic) -> list[Change]:
    changes = [
        TOPICS.remove(topic.name),
        DELETED_TOPICS.put(topic.topic_id.hex(), DeletedTopic(topic.name, topic.topic_id)),
    ]
    if topic.name in image.topic_configs:
        changes.append(TOPIC_CONFIGS.remove(topic.name))
    keys = (partition_key(topic.topic_id, index) for index in range(topic.partition_count))
    return changes + [PARTITION_STATES.remove(key) for key in keys if key in image.partition_states]


def decide_forget(image: Image, topic_ids: Sequence[bytes]) -> Decision[None]:
    """Forget deleted topics whose logs are gone from the disks."""
    gone = [topic_id.hex() for topic_id in topic_ids if topic_id.hex() in image.deleted_topics]
    return Decision(None, tuple(DELETED_TOPICS.remove(key) for key in gone))
