"""Logs with given offsets."""

from collections.abc import Collection, Mapping

from barnabas.base.ids import ZERO_UUID, TopicPartition
from barnabas.client.admin.offsets import EARLIEST, LATEST, OffsetSpec
from barnabas.reading.logs import NO_OFFSET
from barnabas.reading.offset_range import OffsetRange
from barnabas.reading.options import TopicSelection


class FakeLogs:
    """Partitions with a start and an end offset; a record's timestamp is its offset."""

    def __init__(self, ends: Mapping[TopicPartition, int]) -> None:
        self.ends = dict(ends)
        self.starts: dict[TopicPartition, int] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.is_closed = False

    def partitions(self, selection: TopicSelection) -> dict[TopicPartition, bytes]:
        return {tp: self.topic_ids.get(tp.topic, ZERO_UUID) for tp in self.ends}

    def offsets(self, specs: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
        return {tp: self._offset(tp, spec) for tp, spec in specs.items()}

    def record_bytes(self, ranges: Collection[OffsetRange]) -> dict[TopicPartition, float]:
        return {}

    def close(self) -> None:
        self.is_closed = True

    def _offset(self, tp: TopicPartition, spec: OffsetSpec) -> int:
        start, end = self.starts.get(tp, 0), self.ends[tp]
        if spec in (EARLIEST, LATEST):
            return start if spec == EARLIEST else end
        return max(start, spec.timestamp_ms) if spec.timestamp_ms < end else NO_OFFSET
