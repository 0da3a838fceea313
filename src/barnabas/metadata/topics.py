"""Topics and the state of their partitions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barnabas.base.ids import uuid_to_text
from barnabas.metadata.audit.difference import Difference, compare
from barnabas.metadata.record_type import RecordType
from barnabas.metadata.store import NEVER, Prefix, StoreChange
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage


NAME_LENGTH_MAX = 249  # so that "<name>-<partition>" is a valid directory name
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic and the initial replicas of its partitions, the preferred leader first.

    The present replicas are in the state of each partition, because reassignments change them.
    """

    name: str
    topic_id: bytes
    assignments: tuple[tuple[int, ...], ...]

    @property
    def partition_count(self) -> int:
        """Number of partitions; their indexes start at 0."""
        return len(self.assignments)

    @property
    def replication_factor(self) -> int:
        """Number of replicas of the first partition, which Kafka reports for a topic."""
        return len(self.assignments[0])


@dataclass(frozen=True, slots=True)
class PartitionRegistration:
    """The state of a partition; stored from its first change on."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int = 0  #: increases with every change of the state
    #: the replicas, preferred leader first; empty in the store until a reassignment changes them
    replicas: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()  #: replicas that a reassignment adds (KIP-455)
    removing: tuple[int, ...] = ()  #: replicas that are removed when all of `adding` are in sync
    #: eligible leader replicas: not in sync, but with all records below the high watermark (KIP-966)
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()  #: who led last, while the partition has no leader
    offline: tuple[int, ...] = ()  #: replicas whose log directories have failed (KIP-112)

    @property
    def is_reassigning(self) -> bool:
        """Whether a reassignment is in progress."""
        return bool(self.adding or self.removing)


@dataclass(frozen=True, slots=True)
class DeletedTopic:
    """A topic that clients do not see any more, while brokers may still have its logs."""

    name: str
    topic_id: bytes
    brokers: tuple[int, ...] = ()  #: those that have not removed their logs yet, in ascending order


def initial_state(replicas: tuple[int, ...]) -> PartitionRegistration:
    """Return the state of a partition of a new topic: its preferred leader leads, and all replicas are in sync."""
    return PartitionRegistration(leader=replicas[0], leader_epoch=0, isr=replicas, replicas=replicas)


def states_prefix(topic_id: bytes) -> Prefix:
    """Return the beginning of the keys of all partition states of a topic."""
    return Prefix(PARTITION_STATES.key(f"{topic_id.hex()}/"))


def partition_key(topic_id: bytes, index: int) -> str:
    """Return the key of a partition's state: by topic id, so that a recreated topic starts with a new one."""
    return f"{topic_id.hex()}/{index}"


def _topic_to_plain(topic: TopicImage) -> Any:
    return {
        "name": topic.name,
        "id": topic.topic_id.hex(),
        "assignments": [list(a) for a in topic.assignments],
    }


def _topic_from_plain(plain: Any) -> TopicImage:
    assignments = tuple(tuple(replicas) for replicas in plain["assignments"])
    return TopicImage(plain["name"], bytes.fromhex(plain["id"]), assignments)


def _state_to_plain(state: PartitionRegistration) -> Any:
    lists = [state.replicas, state.adding, state.removing, state.elr, state.last_known_elr, state.offline]
    while lists and not lists[-1]:
        del lists[-1]
    return [state.leader, state.leader_epoch, list(state.isr), state.partition_epoch, *map(list, lists)]


def _state_from_plain(plain: Any) -> PartitionRegistration:
    leader, leader_epoch, isr, partition_epoch, *lists = plain
    return PartitionRegistration(leader, leader_epoch, tuple(isr), partition_epoch, *map(tuple, lists))


def _audit_topic(
    _image: "MetadataImage", name: str, before: TopicImage | None, after: TopicImage | None
) -> Iterator[Difference]:
    def view(topic: TopicImage | None) -> dict[str, Any]:
        if topic is None:
            return {}
        replicas = [list(brokers) for brokers in topic.assignments]
        topic_id = uuid_to_text(topic.topic_id)
        return {"topic id": topic_id, "partitions": topic.partition_count, "replicas": replicas}

    return compare(f"topic/{name}", view(before), view(after))


def _audit_partition(
    image: "MetadataImage",
    key: str,
    _before: PartitionRegistration | None,
    after: PartitionRegistration | None,
) -> Iterator[Difference]:
    """Return the differences in replicas and leader; none for topics that do not exist any more, or not yet."""
    topic_id, _, index = key.partition("/")
    topic = image.topic_by_id(bytes.fromhex(topic_id))
    if topic is None or after is None or int(index) >= topic.partition_count:
        return iter(())

    def view(state: PartitionRegistration) -> dict[str, Any]:
        replicas = state.replicas or topic.assignments[int(index)]
        fields = {"replicas": list(replicas), "leader": state.leader}
        fields |= {"isr": list(state.isr), "adding": list(state.adding), "removing": list(state.removing)}
        return {f"partition {index} {name}": value for name, value in fields.items()}

    return compare(f"topic/{topic.name}", view(image.partition(topic, int(index))), view(after))


TOPICS: RecordType[TopicImage] = RecordType(
    "topics", _topic_to_plain, _topic_from_plain, _audit_topic, keeps_history=True
)
PARTITION_STATES: RecordType[PartitionRegistration] = RecordType(
    "partition_states", _state_to_plain, _state_from_plain, _audit_partition
)
#: collision key -> the topic that has it; only for names with '.' or '_'
TAKEN_NAMES: RecordType[str] = RecordType("taken_names", str, str)
DELETED_TOPICS: RecordType[DeletedTopic] = RecordType(
    "deleted_topics",
    lambda topic: [topic.name, topic.topic_id.hex(), list(topic.brokers)],
    lambda plain: DeletedTopic(plain[0], bytes.fromhex(plain[1]), tuple(plain[2]) if len(plain) > 2 else ()),
)


def check_name(name: str) -> None:
    """Check the name of a new topic.

    :raises KafkaError: INVALID_TOPIC_EXCEPTION, with the reason.
    """
    if not name:
        why = "the empty string is not allowed"
    elif name in (".", ".."):
        why = f"'{name}' is not allowed"
    elif len(name) > NAME_LENGTH_MAX:
        why = f"it has {len(name)} characters, at most {NAME_LENGTH_MAX} are allowed: {name}"
    elif not _LEGAL_NAME.fullmatch(name):
        why = f"'{name}' has characters other than ASCII letters, digits, '.', '_' and '-'"
    else:
        return
    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"The topic name is invalid: {why}")


def collision_key(name: str) -> str | None:
    """Return the key that two topics must not share: metric names cannot distinguish '.' from '_', so Kafka refuses
    such pairs.

    None for a name with neither.
    """
    key = name.replace(".", "_")
    return key if "_" in key else None


def topic_put(topic: TopicImage) -> tuple[tuple[StoreChange, ...], dict[str, int]]:
    """Return the changes that create a topic, and the keys that must not exist."""
    changes = [TOPICS.put(topic.name, topic)]
    name_key = collision_key(topic.name)
    if name_key is not None:
        changes.append(TAKEN_NAMES.put(name_key, topic.name))
    return tuple(changes), {change.key: NEVER for change in changes}


def unknown_topic(name: str) -> KafkaError:
    """Return the error for an unknown topic name."""
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}'.")


def unknown_topic_id(text: str) -> KafkaError:
    """Return the error for an unknown topic id; `text` is the id as Kafka prints it."""
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"There is no topic with id {text}.")
