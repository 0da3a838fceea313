"""The logs that are read, as planning queries them: in a cluster (`cluster_logs`), or in files (`file_logs`)."""

from collections.abc import Collection, Mapping
from typing import Protocol

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.reading.offset_range import OffsetRange
from barnabas.reading.options import TopicSelection

#: The response if no record has that timestamp or a later one.
NO_OFFSET = -1


class Logs(Protocol):
    """Logs of a cluster or of log directories, as planning queries them."""

    def partitions(self, selection: TopicSelection) -> dict[TopicPartition, bytes]:
        """Return the current partitions with topic ids (zero if unknown).

        :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION for a named topic that does not exist.
        """
        ...

    def offsets(self, specs: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
        """Resolve offset specs by isolation level; NO_OFFSET if no record is late enough."""
        ...

    def record_bytes(self, ranges: Collection[OffsetRange]) -> dict[TopicPartition, float]:
        """Approximate log bytes per offset, for partitions where it is known."""
        ...

    def close(self) -> None: ...
