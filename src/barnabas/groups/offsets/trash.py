"""Committed offsets of deleted topics: returned when a topic goes to the trash, and restored with it."""

from collections.abc import Mapping, Set
from typing import NamedTuple

from barnabas.coordinator.result import CoordinatorResult
from barnabas.groups.group import Group
from barnabas.groups.offsets.table import OffsetTable
from barnabas.wire.coordinator_records.committed_offset import (
    INDEX_BYTES,
    CommittedOffset,
    decode_partition,
    decode_value,
    encode_group,
    encode_partition,
    encode_value,
)


class GroupOffset(NamedTuple):
    """The committed offset of a group for a partition."""

    group_id: str
    topic: str
    partition: int
    committed: CommittedOffset


class EncodedOffset(NamedTuple):
    """The same, with the end of the key and the value of its record."""

    group_id: str
    partition: bytes
    value: bytes

    def decoded(self) -> GroupOffset:
        return GroupOffset(self.group_id, *decode_partition(self.partition), decode_value(self.value))


def offsets_of_topics(table: OffsetTable, encoded_topics: Set[bytes]) -> list[EncodedOffset]:
    """Return the committed offsets of topics, as `encode_topic` returns them, without those of pending transactions."""
    return [
        EncodedOffset(group_id, partition, value)
        for group_id, partition, (_, value) in table.committed_offsets()
        if partition[:-INDEX_BYTES] in encoded_topics
    ]


def restore_offsets(
    result: CoordinatorResult,
    table: OffsetTable,
    group: Group | None,
    group_id: str,
    topic: str,
    offsets: Mapping[int, CommittedOffset],
) -> int:
    """Commit a group's earlier offsets of a topic, by partition, again; return how many.

    Partitions with an offset or a pending one are left out. A group with members gets none: it has continued without
    them.
    """
    if group is not None and not group.is_empty:
        return 0
    there, key_head = table.of_group(group_id), encode_group(group_id)
    for index, committed in offsets.items():
        partition = encode_partition(topic, index)
        if partition not in there and not table.is_open(group_id, partition):
            value = committed._replace(commit_timestamp_ms=result.now_ms)
            result.append_encoded(key_head + partition, encode_value(value))
    result.is_atomic = False
    return len(result.records)
