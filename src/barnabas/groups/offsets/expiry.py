"""Expiration of unused offsets (KIP-211, KIP-496).

The retention counts from the time at which the group became empty, or else from each commit. Offsets of subscribed
topics, and those with pending commits of transactions, stay.
"""

from barnabas.coordinator.result import CoordinatorResult
from barnabas.groups.group import Group
from barnabas.groups.offsets.table import OffsetTable
from barnabas.wire.coordinator_records.committed_offset import (
    NEVER_MS,
    CommittedOffset,
    decode_partition,
    decode_value,
    encode_group,
)


def expire_offsets(result: CoordinatorResult, table: OffsetTable, group: Group, retention_ms: int) -> bool:
    """Delete a group's expired offsets; return whether none is left."""
    offsets = table.of_group(group.group_id)
    is_open = table.has_open(group.group_id)
    if not offsets:
        return not is_open
    if not group.offsets_may_expire:
        return False
    unused_since_ms = group.offsets_unused_since_ms()
    key_head = encode_group(group.group_id)
    subscribed: dict[str, bool] = {}
    expired_count = 0
    for partition, stored in offsets.items():
        topic, _ = decode_partition(partition)
        if topic not in subscribed:
            subscribed[topic] = group.is_subscribed_to(topic)
        if subscribed[topic] or table.is_open(group.group_id, partition):
            continue
        if _is_expired(decode_value(stored[1]), unused_since_ms, result.now_ms, retention_ms):
            result.append_encoded(key_head + partition, None)
            expired_count += 1
    return expired_count == len(offsets) and not is_open


def _is_expired(
    committed: CommittedOffset, unused_since_ms: int | None, now_ms: int, retention_ms: int
) -> bool:
    if committed.expire_timestamp_ms != NEVER_MS:  # committed with its own retention
        return now_ms >= committed.expire_timestamp_ms
    since_ms = committed.commit_timestamp_ms if unused_since_ms is None else unused_since_ms
    return now_ms - since_ms >= retention_ms
