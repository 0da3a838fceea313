"""Offset of a stream: a position in each partition, the ids of the topics, and how the batch before it is split.

What Spark's Kafka connector does not have is in keys that begin with `#`. They are not valid topic names, and the
connector treats them as topics without partitions to read.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, TypeAlias

from barnabas.base.ids import ZERO_UUID, TopicPartition, uuid_from_text, uuid_to_text
from barnabas.reading.offset_range_limits import Positions
from barnabas.reading.option_values import flat, nested

#: Prefix of keys for topic ids: `#topicId:NAME:ID`.
TOPIC_ID_PREFIX = "#topicId:"

#: Prefix of keys for the ends of a task's ranges in one topic: `#task:NUMBER:NAME:PARTITION=END,PARTITION=END`.
_TASK_PREFIX = "#task:"
#: Key of a batch with one task for each partition.
_TASK_PER_PARTITION = "#tasks:partitions"

#: Prefix of keys for where a query began in one topic: `#from:NAME:PARTITION=OFFSET,PARTITION=OFFSET`.
_BEGIN_PREFIX = "#from:"
#: Key of a query that began before there was any partition.
_BEGIN_EMPTY = "#from"

#: For each task, the partitions and ends of its ranges, each of which begins where the one before it ends.
Split: TypeAlias = tuple[tuple[tuple[TopicPartition, int], ...], ...]
#: One task for each partition.
BY_PARTITION: Split = ()


@dataclass(frozen=True)
class StreamOffset:
    """Offset of a source as saved in a checkpoint."""

    positions: Positions = field(default_factory=dict)
    #: Topic ids by topic, without unknown ones, as in checkpoints of Spark's Kafka connector.
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    #: The tasks of the batch that ends here, so that a restart repeats the same ones; None if they are not known.
    split: Split | None = None
    #: Where the query began, if its first batch ends here; None in other batches. With Spark 4.1, which does not say
    #: where a batch begins, it is in all ends.
    begin: Positions | None = None

    @classmethod
    def of(cls, positions: Positions, topic_ids: Mapping[TopicPartition, bytes]) -> "StreamOffset":
        """Return `positions` with the ids of their topics, as `Logs.partitions` returns them."""
        ids = {tp.topic: topic_ids[tp] for tp in sorted(positions) if tp in topic_ids}
        return cls(positions, {topic: topic_id for topic, topic_id in ids.items() if topic_id != ZERO_UUID})

    def at(self, positions: Positions) -> "StreamOffset":
        """Return an offset of the same topics."""
        return replace(self, positions=positions)

    def recreated(self, later: Mapping[str, bytes]) -> set[str]:
        """Return the topics that have another id in `later`; an unknown id counts as unchanged."""
        return {topic for topic, topic_id in self.topic_ids.items() if later.get(topic, topic_id) != topic_id}

    def without(self, topics: set[str]) -> "StreamOffset":
        """Return the offset without these topics."""
        return replace(
            self,
            positions={tp: offset for tp, offset in self.positions.items() if tp.topic not in topics},
            topic_ids={topic: topic_id for topic, topic_id in self.topic_ids.items() if topic not in topics},
        )

    def is_at(self, other: "StreamOffset") -> bool:
        """Whether no records of the same topics are between the two."""
        return (self.positions, self.topic_ids) == (other.positions, other.topic_ids)

    def to_json(self) -> dict[str, dict[str, Any]]:
        """Return the connector's JSON, and beside it all that it does not have, in keys of empty entries."""
        written: dict[str, dict[str, Any]] = {**nested(self.positions)}
        for topic, topic_id in sorted(self.topic_ids.items()):
            written[f"{TOPIC_ID_PREFIX}{topic}:{uuid_to_text(topic_id)}"] = {}
        return written | {key: {} for key in (*_split_keys(self.split), *_begin_keys(self.begin))}

    @classmethod
    def from_json(cls, written: Mapping[str, Mapping[str, Any]]) -> "StreamOffset":
        """Parse JSON written by `to_json` or by the connector.

        :raises ValueError: A topic id is not valid.
        """
        entries = [key.split(":") for key in written if key.startswith(TOPIC_ID_PREFIX)]
        ids = {topic: uuid_from_text(text) for _, topic, text in entries}
        return cls(flat(positions_only(written)), ids, _split_of(written), _begin_of(written))


def _split_keys(split: Split | None) -> Iterator[str]:
    if split is None:
        return
    if split == BY_PARTITION:
        yield _TASK_PER_PARTITION
    for number, task in enumerate(split):
        for text in _by_topic(task):
            yield f"{_TASK_PREFIX}{number}:{text}"


def _split_of(written: Iterable[str]) -> Split | None:
    tasks: defaultdict[int, list[tuple[TopicPartition, int]]] = defaultdict(list)
    for key in written:
        if key == _TASK_PER_PARTITION:
            return BY_PARTITION
        if key.startswith(_TASK_PREFIX):
            number, _, text = key.removeprefix(_TASK_PREFIX).partition(":")
            tasks[int(number)] += _of_topic(text)
    return tuple(tuple(tasks[number]) for number in sorted(tasks)) or None


def _begin_keys(begin: Positions | None) -> Iterator[str]:
    if begin is None:
        return
    if not begin:
        yield _BEGIN_EMPTY
    for text in _by_topic(sorted(begin.items())):
        yield f"{_BEGIN_PREFIX}{text}"


def _begin_of(written: Mapping[str, Any]) -> Positions | None:
    keys = [key for key in written if key.startswith(_BEGIN_PREFIX)]
    if not keys and _BEGIN_EMPTY not in written:
        return None
    return dict(position for key in keys for position in _of_topic(key.removeprefix(_BEGIN_PREFIX)))


def _by_topic(offsets: Iterable[tuple[TopicPartition, int]]) -> Iterator[str]:
    """Yield `TOPIC:PARTITION=OFFSET,PARTITION=OFFSET` for consecutive partitions of a topic."""
    for topic, of_topic in groupby(offsets, lambda each: each[0].topic):
        yield f"{topic}:" + ",".join(f"{tp.partition}={offset}" for tp, offset in of_topic)


def _of_topic(text: str) -> list[tuple[TopicPartition, int]]:
    topic, _, texts = text.partition(":")
    offsets = (each.split("=") for each in texts.split(","))
    return [(TopicPartition(topic, int(index)), int(offset)) for index, offset in offsets]


def positions_only(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return an offset's JSON as the connector would write it."""
    return {topic: value for topic, value in written.items() if not topic.startswith("#")}
