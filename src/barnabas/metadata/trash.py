"""The trash: deleted topics that can be restored for a while.

Their names are free. Their ids, configs, partition states and committed offsets are kept, and brokers keep their logs.
"""

import json
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from barnabas.base.ids import uuid_to_text
from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.record_type import RecordType
from barnabas.metadata.topics import PARTITION_STATES, TOPICS, PartitionRegistration, TopicImage
from barnabas.wire.coordinator_records.committed_offset import CommittedOffset

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage


KeyT = TypeVar("KeyT", bound=Hashable)

#: Committed offsets of a topic: group -> partition -> offset.
TopicOffsets: TypeAlias = Mapping[str, Mapping[int, CommittedOffset]]


@dataclass(frozen=True, slots=True)
class TrashRecord:
    """A topic as it was when it was deleted."""

    topic: TopicImage
    configs: Mapping[str, str]
    states: Mapping[int, PartitionRegistration]  #: of partitions whose state had changed
    deleted_ms: int  #: since the epoch
    deleted_by: str  #: principal
    offsets: TopicOffsets = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.topic.name

    @property
    def brokers(self) -> tuple[int, ...]:
        """The brokers with replicas, in ascending order."""
        replicas: set[int] = set()
        for index, assigned in enumerate(self.topic.assignments):
            state = self.states.get(index)
            replicas.update(state.replicas if state is not None and state.replicas else assigned)
        return tuple(sorted(replicas))

    @property
    def topic_id(self) -> bytes:
        """The topic id, which the restored topic has again."""
        return self.topic.topic_id


def _to_plain(trashed: TrashRecord) -> Any:
    states = {str(index): PARTITION_STATES.to_plain(state) for index, state in trashed.states.items()}
    offsets = {
        group_id: {str(index): _offset_to_plain(committed) for index, committed in partitions.items()}
        for group_id, partitions in trashed.offsets.items()
    }
    return [
        TOPICS.to_plain(trashed.topic),
        dict(trashed.configs),
        states,
        trashed.deleted_ms,
        trashed.deleted_by,
        *([offsets] if offsets else []),
    ]


def _from_plain(plain: Any) -> TrashRecord:
    topic, configs, states, deleted_ms, deleted_by, *optional = plain
    partition_states = {int(index): PARTITION_STATES.from_plain(state) for index, state in states.items()}
    offsets = {
        group_id: {int(index): CommittedOffset(*fields) for index, fields in partitions.items()}
        for group_id, partitions in (optional[0] if optional else {}).items()
    }
    return TrashRecord(TOPICS.from_plain(topic), configs, partition_states, deleted_ms, deleted_by, offsets)


def _offset_to_plain(committed: CommittedOffset) -> list[Any]:
    """Return the offset without the topic id, which is stored beside it."""
    return [
        committed.offset,
        committed.leader_epoch,
        committed.metadata,
        committed.commit_timestamp_ms,
        committed.expire_timestamp_ms,
    ]


def offset_bytes(partition: int, committed: CommittedOffset) -> int:
    """Return how much an offset adds to the row of its topic."""
    return len(json.dumps({str(partition): _offset_to_plain(committed)}, separators=(",", ":")))


def group_bytes(group_id: str) -> int:
    """Return how much a group adds to the row of a topic, beside its offsets."""
    return len(json.dumps({group_id: {}}, separators=(",", ":")))


def too_large(sizes_bytes: Mapping[KeyT, int], bytes_max: int) -> frozenset[KeyT]:
    """Return the largest ones, without which the others have at most so many bytes together."""
    excess_bytes = sum(sizes_bytes.values()) - bytes_max
    left_out: set[KeyT] = set()
    if excess_bytes > 0:
        for key in sorted(sizes_bytes, key=lambda key: sizes_bytes[key], reverse=True):
            if excess_bytes <= 0:
                break
            left_out.add(key)
            excess_bytes -= sizes_bytes[key]
    return frozenset(left_out)


def _audit(
    _image: "MetadataImage", _key: str, before: TrashRecord | None, after: TrashRecord | None
) -> Iterator[Difference]:
    trashed = after or before
    assert trashed is not None
    topic_id = uuid_to_text(trashed.topic_id)
    yield Difference(f"topic/{trashed.name}", "in the trash", before and topic_id, after and topic_id)


#: topic id in hex -> the topic
TRASHED_TOPICS: RecordType[TrashRecord] = RecordType("trashed_topics", _to_plain, _from_plain, _audit)


@dataclass(frozen=True, slots=True)
class TrashEntry:
    """The principal and time of a deletion to the trash, and the committed offsets of each topic, by name."""

    deleted_ms: int
    deleted_by: str
    offsets: Mapping[str, TopicOffsets] = field(default_factory=dict)
