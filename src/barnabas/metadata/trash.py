"""Deleted topics that can come back for a while: what the cluster keeps of them, and how they come back or go.

Their names are free; their ids, configs and the states of their partitions are kept, as brokers keep their logs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.metadata.noun import Noun
from barnabas.metadata.topics import PARTITION_STATES, TOPICS, PartitionState, Topic


@dataclass(frozen=True, slots=True)
class TrashedTopic:
    """A topic as it was when it was deleted."""

    topic: Topic
    configs: Mapping[str, str]
    states: Mapping[int, PartitionState]  #: of those partitions to which something had happened
    deleted_ms: int  #: since the epoch
    deleted_by: str  #: a principal

    @property
    def name(self) -> str:
        """The name that it had."""
        return self.topic.name

    @property
    def topic_id(self) -> bytes:
        """The id that it had, and will have again."""
        return self.topic.topic_id


def _to_plain(trashed: TrashedTopic) -> Any:
    states = {str(index): PARTITION_STATES.to_plain(state) for index, state in trashed.states.items()}
    return [
        TOPICS.to_plain(trashed.topic),
        dict(trashed.configs),
        states,
        trashed.deleted_ms,
        trashed.deleted_by,
    ]


def _from_plain(plain: Any) -> TrashedTopic:
    topic, configs, states, deleted_ms, deleted_by = plain
    found = {int(index): PARTITION_STATES.from_plain(state) for index, state in states.items()}
    return TrashedTopic(TOPICS.from_plain(topic), configs, found, deleted_ms, deleted_by)


#: topic id in hex -> the topic
TRASHED_TOPICS: Noun[TrashedTopic] = Noun("trashed_topics", _to_plain, _from_plain)


@dataclass(frozen=True, slots=True)
class Deletion:
    """Who deletes topics, and when, so that they go to the trash."""

    deleted_ms: int
    deleted_by: str
