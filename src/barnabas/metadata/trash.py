"""Deleted topics that can come back for a while: what the cluster keeps of them, and how they come back or go.

Their names are free; their ids, configs, the states of their partitions and what groups had committed are kept, as
brokers keep their logs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.record_type import RecordType
from barnabas.metadata.topics import PARTITION_STATES, TOPICS, PartitionRegistration, TopicImage
from barnabas.wire.coordinator_records.committed_offset import CommittedOffset

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage


#: What groups have committed for a topic: group -> partition -> offset.
TopicOffsets: TypeAlias = Mapping[str, Mapping[int, CommittedOffset]]


@dataclass(frozen=True, slots=True)
class TrashRecord:
    """A topic as it was when it was deleted."""

    topic: TopicImage
    configs: Mapping[str, str]
    states: Mapping[int, PartitionRegistration]  #: of those partitions to which something had happened
    deleted_ms: int  #: since the epoch
    deleted_by: str  #: a principal
    offsets: TopicOffsets = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name that it had."""
        return self.topic.name

    @property
    def topic_id(self) -> bytes:
        """The id that it had, and will have again."""
        return self.topic.topic_id


def _to_plain(trashed: TrashRecord) -> Any:
    states = {str(index): PARTITION_STATES.to_plain(state) for index, state in trashed.states.items()}
    offsets = {
        group_id: {str(index): _offset_to_plain(each) for index, each in partitions.items()}
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
    topic, configs, states, deleted_ms, deleted_by, *offsets = plain
    found = {int(index): PARTITION_STATES.from_plain(state) for index, state in states.items()}
    kept = {
        group_id: {int(index): CommittedOffset(*each) for index, each in partitions.items()}
        for group_id, partitions in (offsets[0] if offsets else {}).items()
    }
    return TrashRecord(TOPICS.from_plain(topic), configs, found, deleted_ms, deleted_by, kept)


def _offset_to_plain(committed: CommittedOffset) -> list[Any]:
    """Without the topic's id, which stands beside it."""
    return [
        committed.offset,
        committed.leader_epoch,
        committed.metadata,
        committed.commit_timestamp_ms,
        committed.expire_timestamp_ms,
    ]


def _audit(
    _image: "MetadataImage", key: str, before: TrashRecord | None, after: TrashRecord | None
) -> Iterator[Difference]:
    trashed = after or before
    assert trashed is not None
    yield Difference(f"topic/{trashed.name}", "in the trash", before and key, after and key)


#: topic id in hex -> the topic
TRASHED_TOPICS: RecordType[TrashRecord] = RecordType("trashed_topics", _to_plain, _from_plain, _audit)


@dataclass(frozen=True, slots=True)
class TrashEntry:
    """Who deletes topics, and when, so that they go to the trash; and what groups have committed for each, by name."""

    deleted_ms: int
    deleted_by: str
    offsets: Mapping[str, TopicOffsets] = field(default_factory=dict)
