"""The sizes of committed offsets in the trash."""

from barnabas.metadata.trash import (
    TRASHED_TOPICS,
    TopicOffsets,
    TrashRecord,
    group_bytes,
    offset_bytes,
    too_large,
)
from barnabas.wire.coordinator_records.committed_offset import CommittedOffset
from support.images import cluster, manually_assigned

TOPIC = cluster(1, manually_assigned("t", [1])).topics["t"]


def row_bytes(offsets: TopicOffsets) -> int:
    return len(TRASHED_TOPICS.put("t", TrashRecord(TOPIC, {}, {}, 1, "User:alice", offsets)).value or b"")


def test_the_sizes_of_groups_and_offsets_are_those_in_the_row() -> None:
    committed = CommittedOffset(5, 2, "n\N{LATIN SMALL LETTER O WITH DIAERESIS}te\0" * 1_000, 1_000)
    offsets = {"g": {0: committed, 17: committed}, 'say "hi"': {1_000: committed}}
    counted = sum(
        group_bytes(group_id) + sum(offset_bytes(index, each) for index, each in partitions.items())
        for group_id, partitions in offsets.items()
    )
    added = row_bytes(offsets) - row_bytes({})
    assert added <= counted < added + 20


def test_the_largest_are_left_out_until_the_others_fit() -> None:
    sizes_bytes = {"a": 10, "b": 4_000, "c": 20, "d": 3_000}
    assert too_large(sizes_bytes, 7_030) == frozenset()
    assert too_large(sizes_bytes, 7_029) == {"b"}
    assert too_large(sizes_bytes, 100) == {"b", "d"}
    assert too_large(sizes_bytes, 0) == set(sizes_bytes)
