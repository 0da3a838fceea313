"""The offsets of all groups of a shard."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set

from barnabas.base.ids import TopicPartition
from barnabas.coordinator.result import CoordinatorResult, Pending, TimerKey
from barnabas.coordinator.shard import RecordPosition, Step
from barnabas.groups.context import GroupCoordinatorContext
from barnabas.groups.group import Group
from barnabas.groups.offsets.commits import Commits
from barnabas.groups.offsets.deletions import delete_some, delete_topic, deletions, missed_deletions
from barnabas.groups.offsets.expiry import expire_offsets
from barnabas.groups.offsets.fetches import fetch
from barnabas.groups.offsets.table import OffsetTable, StoredOffset
from barnabas.groups.offsets.trash import EncodedOffset, offsets_of_topics, restore_offsets
from barnabas.groups.statistics import OffsetStatistics
from barnabas.metadata.image import MetadataImage
from barnabas.wire.coordinator_records.committed_offset import (
    CommittedOffset,
    decode_partition,
    decode_value,
    encode_partition,
)
from barnabas.wire.coordinator_records.serde import EncodedRecord
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from barnabas.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from barnabas.wire.records.control import EndTransactionMarker

#: The timer of the expiration.
EXPIRE_OFFSETS = "expire offsets"

#: Offsets that are checked before other clients are served.
LOOKED_AT_OFFSETS_MAX = 2_000

_MS_PER_MINUTE = 60_000


class OffsetManager:
    """Offsets by group; creates groups that exist only because of their offsets."""

    def __init__(
        self,
        groups: Mapping[str, Group],
        context: GroupCoordinatorContext,
        make_simple_group: Callable[[str], None],
    ) -> None:
        """:param make_simple_group: Creates a group without members, for committed offsets."""
        self._groups = groups
        self._config = context.config
        self._image = context.image
        self._counts = context.counts
        self._rebalances = context.rebalances
        self._make_simple_group = make_simple_group
        self._to_look_at: Iterator[str] = iter(
            ()
        )  #: groups that this round of the expiration has not checked yet
        self.table = OffsetTable()
        self._commits = Commits(groups, context)
        self.commit = self._commits.commit
        self.commit_offsets = self._commits.commit_offsets
        self.commit_in_transaction = self._commits.commit_in_transaction

    # Records

    def replay(self, record: EncodedRecord, position: RecordPosition) -> None:
        """Apply the record of an offset, or its tombstone."""
        group_id = self.table.replay(record.key, record.value, position)
        if record.value is not None and group_id not in self._groups:
            self._make_simple_group(group_id)

    def replay_transaction_marker(self, marker: EndTransactionMarker) -> None:
        """Apply a transaction marker that ends a producer's transaction."""
        self.table.end_transaction(marker.producer_id, commit=marker.commit)

    # Requests

    def fetch(self, requested: OffsetFetchRequestGroup, *, require_stable: bool) -> OffsetFetchResponseGroup:
        """Return the offsets of one group, of all its partitions if no topics are requested.

        :raises KafkaError: Those of `Group.check_offset_fetch`.
        """
        return fetch(requested, *self._readable(requested, require_stable=require_stable))

    def delete(
        self, result: CoordinatorResult, pending: Pending[OffsetDeleteResponse], request: OffsetDeleteRequest
    ) -> None:
        """Delete offsets of topics to which no member subscribes (KIP-496).

        :raises KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
        """
        group = self._groups.get(request.group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
        group.check_offset_deletion()
        topics = [delete_topic(result, self.table, group, topic) for topic in request.topics]
        self._counts.offset_deletions_count += len(result.records)
        result.answer(pending, OffsetDeleteResponse(topics=topics))

    def committed_in(
        self, group_id: str, topics: Iterable[OffsetDeleteRequestTopic]
    ) -> dict[TopicPartition, int]:
        """Return the group's offsets of the named partitions."""
        offsets = self.table.of_group(group_id)
        committed: dict[TopicPartition, int] = {}
        for topic in topics:
            for requested in topic.partitions:
                stored = offsets.get(encode_partition(topic.name, requested.partition_index))
                if stored is not None:
                    partition = TopicPartition(topic.name, requested.partition_index)
                    committed[partition] = decode_value(stored[1]).offset
        return committed

    def snapshot(
        self, requested: OffsetFetchRequestGroup, *, require_stable: bool
    ) -> tuple[Mapping[bytes, StoredOffset], frozenset[bytes]]:
        """Return the present offsets of a group for `fetch`, and its unstable partitions.

        :raises KafkaError: As `fetch`.
        """
        offsets, unstable = self._readable(requested, require_stable=require_stable)
        return dict(offsets), frozenset(unstable)

    def _readable(
        self, requested: OffsetFetchRequestGroup, *, require_stable: bool
    ) -> tuple[Mapping[bytes, StoredOffset], frozenset[bytes]]:
        group = self._groups.get(requested.group_id)
        if group is not None:
            group.check_offset_fetch(requested.member_id, requested.member_epoch)
        unstable = self.table.open_partitions(requested.group_id) if require_stable else frozenset()
        return self.table.of_group(requested.group_id), unstable

    # Deleted groups and topics

    def delete_some(
        self, result: CoordinatorResult, group_id: str, count_max: int
    ) -> tuple[dict[TopicPartition, int], bool]:
        """Delete up to `count_max` offsets of a group, including those of pending transactions.

        Return the committed ones of them, and whether none is left.
        """
        offsets = self.table.of_group(group_id)
        partitions, is_last = delete_some(result, self.table, group_id, count_max)
        deleted = {
            TopicPartition(*decode_partition(partition)): decode_value(offsets[partition][1]).offset
            for partition in partitions
            if partition in offsets
        }
        return deleted, is_last

    def catch_up(self, before: MetadataImage) -> Iterator[Step]:
        """Delete the offsets of topics that were deleted before the offsets were loaded; `before` is the image when
        that began.
        """
        return missed_deletions(before, self._image).steps(self.table)

    def on_metadata_update(self, before: MetadataImage, after: MetadataImage) -> Iterator[Step]:
        """Delete the offsets of deleted topics."""
        return deletions(before, after, self._image).steps(self.table)

    def of_topics(self, encoded_topics: Set[bytes]) -> list[EncodedOffset]:
        """Return the offsets of topics that are about to be deleted."""
        return offsets_of_topics(self.table, encoded_topics)

    def restore(
        self,
        result: CoordinatorResult,
        pending: Pending[int],
        group_id: str,
        topic: str,
        offsets: Mapping[int, CommittedOffset],
    ) -> None:
        """Restore a group's offsets of a topic from the trash; the response is their number."""
        group = self._groups.get(group_id)
        result.answer(pending, restore_offsets(result, self.table, group, group_id, topic, offsets))

    # Expiration

    def on_loaded(self, result: CoordinatorResult) -> None:
        """Start the expiration."""
        self._schedule_expiration(result)

    def expire(self, result: CoordinatorResult, key: TimerKey) -> None:
        """Delete expired offsets, a few groups at a time, and groups that then have neither offsets nor members."""
        if key == _NEXT_ROUND:
            self._to_look_at = iter(tuple(self._groups))
        retention_ms = self._config().integer("offsets.retention.minutes") * _MS_PER_MINUTE
        result.is_atomic = False
        looked_at_count = 0
        for group_id in self._to_look_at:
            group = self._groups.get(group_id)
            if group is None:
                continue
            looked_at_count += 1 + len(self.table.of_group(group_id))
            before_count = len(result.records)
            has_none_left = expire_offsets(result, self.table, group, retention_ms)
            self._counts.offset_expirations_count += len(result.records) - before_count
            if has_none_left and group.is_empty:
                group.append_tombstones(result)
                self._rebalances.remove_group(group.group_id)
            if looked_at_count >= LOOKED_AT_OFFSETS_MAX:
                result.set_timer(_SAME_ROUND, 0)
                return
        self._schedule_expiration(result)

    def _schedule_expiration(self, result: CoordinatorResult) -> None:
        result.set_timer(_NEXT_ROUND, self._config().integer("offsets.retention.check.interval.ms"))

    def statistics(self) -> OffsetStatistics:
        return self.table.statistics()


_NEXT_ROUND: TimerKey = (EXPIRE_OFFSETS, "next round")
_SAME_ROUND: TimerKey = (EXPIRE_OFFSETS, "same round")
