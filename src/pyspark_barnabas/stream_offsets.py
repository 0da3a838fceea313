"""Offset of a stream: a position in each partition, and the ids of the topics."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from barnabas.base.ids import ZERO_UUID, TopicPartition, uuid_from_text, uuid_to_text
from pyspark_barnabas.option_values import flat, nested
from pyspark_barnabas.source.offset_range_limits import Positions

#: Prefix of keys for topic ids among the topics in an offset's JSON, without partitions: `#topicId:NAME:ID`. It is not
#: a valid topic name, and Spark's Kafka connector treats it as a topic without partitions to read.
TOPIC_ID_PREFIX = "#topicId:"


@dataclass(frozen=True)
class StreamOffset:
    """Offset of a source as saved in a checkpoint."""

    positions: Positions = field(default_factory=dict)
    #: Topic ids by topic, without unknown ones, as in checkpoints of Spark's Kafka connector.
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)

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
        return StreamOffset(
            {tp: offset for tp, offset in self.positions.items() if tp.topic not in topics},
            {topic: topic_id for topic, topic_id in self.topic_ids.items() if topic not in topics},
        )

    def to_json(self) -> dict[str, dict[str, Any]]:
        """Return the connector's JSON, with an empty entry for each id: `"#topicId:orders:ID": {}`."""
        written: dict[str, dict[str, Any]] = {**nested(self.positions)}
        for topic, topic_id in sorted(self.topic_ids.items()):
            written[f"{TOPIC_ID_PREFIX}{topic}:{uuid_to_text(topic_id)}"] = {}
        return written

    @classmethod
    def from_json(cls, written: Mapping[str, Mapping[str, Any]]) -> "StreamOffset":
        """Parse JSON written by `to_json` or by the connector.

        :raises ValueError: A topic id is not valid.
        """
        entries = [key.split(":") for key in written if key.startswith(TOPIC_ID_PREFIX)]
        ids = {topic: uuid_from_text(text) for _, topic, text in entries}
        return cls(flat(without_ids(written)), ids)


def without_ids(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return an offset's JSON as the connector would write it."""
    return {topic: value for topic, value in written.items() if not topic.startswith(TOPIC_ID_PREFIX)}
